#!/usr/bin/env bash
# Configures Sluice where GoogleTest is missing or lacks gmock: without a word about tests they are left out, and with
# SLUICE_TESTS=ON there is one error, which names what is missing. Open it when a first build ends with another error.
#
# Usage: without_googletest_test.sh SOURCES CMAKE GENERATOR C_COMPILER CXX_COMPILER
set -euo pipefail
sources=$1 cmake=$2
always=(-S "$sources" -G "$3" "-DCMAKE_C_COMPILER=$4" "-DCMAKE_CXX_COMPILER=$5" -DSLUICE_COMMAND=OFF -DSLUICE_SCENARIOS=OFF)
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
fail() {
  printf 'FAILED: %s\n' "$@"
  exit 1
}

# A GoogleTest as libgtest-dev alone gives it.
mkdir "$temporary/without_gmock"
printf 'add_library(GTest::%s INTERFACE IMPORTED)\n' gtest gtest_main >"$temporary/without_gmock/GTestConfig.cmake"

number=0
for missing in -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON "-DGTest_DIR=$temporary/without_gmock"; do
  number=$((number + 1))
  output=$("$cmake" "${always[@]}" -B "$temporary/default$number" "$missing" 2>&1) || fail "$missing: an error by default" "$output"
  grep -q -- '-- No tests: GoogleTest with gmock is not installed' <<<"$output" || fail "$missing: it does not say that there are no tests" "$output"
  if output=$("$cmake" "${always[@]}" -B "$temporary/asked$number" "$missing" -DSLUICE_TESTS=ON 2>&1); then
    fail "$missing: no error where tests are asked for" "$output"
  fi
  [ "$(grep -c 'CMake Error' <<<"$output")" -eq 1 ] || fail "$missing: more than one error" "$output"
  grep -q 'needs GoogleTest with gmock' <<<"$output" || fail "$missing: the error does not name what is missing" "$output"
done
echo "passed"
