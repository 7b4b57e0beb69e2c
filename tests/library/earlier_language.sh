#!/bin/sh
# usage: earlier_language.sh COMPILER INCLUDE_FOLDER
# Each public header, compiled as C++17: one error says what is needed, and nothing else is complained of. Those of scopes
# and frames, which need no more, compile.
set -u
compiler=$1 include=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() {
  echo "FAILED: $*"
  cat "$work/errors"
  failures=$((failures + 1))
}
for header in "$include"/sluice/*.hpp; do
  name=${header##*/}
  printf '#include <sluice/%s>\nsluice::pool<int> nobody_complains_of_this;\n' "$name" >"$work/source.cpp"
  case $name in
    frame.hpp | scope.hpp)
      printf '#include <sluice/%s>\n' "$name" >"$work/source.cpp"
      "$compiler" -std=c++17 -Wall -Werror -fsyntax-only -I"$include" "$work/source.cpp" 2>"$work/errors" || fail "$name"
      continue
      ;;
  esac
  "$compiler" -std=c++17 -fsyntax-only -I"$include" "$work/source.cpp" 2>"$work/errors" && fail "$name is taken for C++17"
  [ "$(grep -c "error: .*Sluice's C++ headers need C++20: compile with -std=c++20 or later" "$work/errors")" -eq 1 ] ||
    fail "$name: the error is not there once"
  [ "$(grep 'error:' "$work/errors" | grep -vc "need C++20\|that was all")" -eq 0 ] || fail "$name: more errors"
done
[ $failures -eq 0 ] && echo passed
