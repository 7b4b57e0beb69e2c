#!/bin/sh
# usage: smoke_test.sh [CMAKE ARGUMENT]...
# Builds Sluice on this system without its tests, installs it into a temporary folder and uses it from there: for systems on which
# the tests do not run. It needs CMake and a compiler.
set -eu
sources=$(cd "$(dirname "$0")/../.." && pwd)
version=$(sed -n 's/^#define SLUICE_VERSION "\(.*\)"/\1/p' "$sources/lib/include/sluice/sluice.h")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
  echo "smoke_test.sh: FAILED: $*" >&2
  exit 1
}
# says TEXT COMMAND...: the command succeeds and prints the text.
says() {
  text=$1
  shift
  printed=$("$@" 2>&1) || fail "$*: $printed"
  case $printed in
    *"$text"*) ;;
    *) fail "$* does not say '$text': $printed" ;;
  esac
}

cmake -S "$sources" -B "$folder/build" -DCMAKE_BUILD_TYPE=Release -DSLUICE_TESTS=OFF -DCMAKE_INSTALL_PREFIX="$folder/prefix" \
  -DCMAKE_INSTALL_LIBDIR=lib "$@"
cmake --build "$folder/build" --parallel "${JOBS:-2}"
cmake --install "$folder/build" >/dev/null
library=$folder/prefix/lib

if [ "$(uname)" = Darwin ]; then
  cc -I "$folder/prefix/include" "$sources/tests/package/consumer/asks.c" -o "$folder/asks" -L "$library" -lsluice -Wl,-rpath,"$library"
  "$folder/asks" "$version" || fail "a program that is linked with libsluice.dylib"
  # Not linked with it, and not of the system: the loader keeps the variable.
  printf 'int main(void) { return 0; }\n' >"$folder/program.c"
  cc "$folder/program.c" -o "$folder/program"
  says '"schema": "sluice-stats"' env DYLD_INSERT_LIBRARIES="$library/libsluice.dylib" SLUICE_STATS=json "$folder/program"
  echo "smoke_test.sh: passed"
  exit 0
fi

cmake -S "$sources/tests/package/consumer" -B "$folder/consumer" -DCMAKE_PREFIX_PATH="$folder/prefix" -DEXPECTED_PREFIX="$folder/prefix" >/dev/null
cmake --build "$folder/consumer" --parallel "${JOBS:-2}" >/dev/null
for program in asks_linked asks_static arena_preload arena_static; do
  case $program in
    asks_*) argument=$version ;;
    *) argument=present ;;
  esac
  "$folder/consumer/$program" "$argument" || fail "$program"
done
"$folder/consumer/news_static" || fail news_static
"$folder/consumer/library_checked" || fail library_checked
for kind in sluice sluice-secure; do
  says '"schema": "sluice-stats"' env LD_PRELOAD="$library/lib$kind.so" SLUICE_STATS=json ls /
  LD_PRELOAD=$library/lib$kind.so "$folder/consumer/asks" "$version" || fail "lib$kind.so, preloaded"
done
if [ -x "$folder/prefix/bin/sluice" ]; then
  says "$library/libsluice.so" "$folder/prefix/bin/sluice" run -- printenv LD_PRELOAD
fi
echo "smoke_test.sh: passed"
