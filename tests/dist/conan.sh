#!/usr/bin/env bash
# The recipe for Conan, from the archive of sources: the package builds, and with it the projects of tests/package, by CMake and
# by pkg-config; a program takes the deployed library as its preload. Needs PyPI; Conan itself fetches nothing.
source "$(dirname "$0")/testing.sh"
python_tools conan==2.34.0
unpack_sources
export CONAN_HOME=$workspace/conan
conan() { timeout 1800 "$tools/conan" "$@" >"$workspace/log" 2>&1 || { tail -n 40 "$workspace/log" && fail "conan $1"; }; }
conan profile detect
conan remote disable '*'

# Its own test_package runs the programs.
conan create "$sources/lib/packages/conan" -c tools.cmake.cmake_layout:test_folder="$workspace/test_package"
# The same package serves programs that are debugged.
conan test "$sources/lib/packages/conan/test_package" "sluice/$version" -s build_type=Debug -c tools.cmake.cmake_layout:test_folder="$workspace/test_package"
for program in asks asks_linked asks_static news_static library_checked library_unchecked arena_lib arena_preload arena_static; do
  grep -q "RUN: ./$program" "$workspace/log" || fail "the test of the package did not run $program"
done

conan install --requires="sluice/$version" --generator PkgConfigDeps --deployer direct_deploy --output-folder "$workspace/deployed"
deployed=$workspace/deployed/direct_deploy/sluice
for way in sluice sluice-static; do
  # shellcheck disable=SC2046 # the flags are words
  PKG_CONFIG_PATH=$workspace/deployed "${CC:-cc}" "$tests/package/consumer/asks.c" -o "$workspace/$way" \
    $(PKG_CONFIG_PATH=$workspace/deployed pkg-config --cflags --libs "$way") || fail "pkg-config $way"
done
LD_LIBRARY_PATH=$deployed/lib "$workspace/sluice" "$version" || fail "linked by pkg-config"
"$workspace/sluice-static" "$version" || fail "the static library by pkg-config"
! readelf -d "$workspace/sluice-static" | grep -q libsluice || fail "the static library was not taken"
says '"schema": "sluice-stats"' env LD_PRELOAD="$deployed/lib/libsluice.so" SLUICE_STATS=json ls /

if "$tools/conan" install --requires="sluice/$version" -s os=FreeBSD --output-folder "$workspace/refused" >"$workspace/log" 2>&1; then
  fail "another system is not refused"
fi
says 'this package is for Linux on x86_64 and armv8' cat "$workspace/log"
echo "$0: passed"
