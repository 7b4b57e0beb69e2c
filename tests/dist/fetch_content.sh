#!/usr/bin/env bash
# FetchContent of CMake: a project that fetches the archive of sources as lib/docs/linking.md shows builds on sluice::static, and runs.
source "$(dirname "$0")/testing.sh"
block=$(sed -n '/^include(FetchContent)/,/^```/p' "$tests/../lib/docs/linking.md" | sed '$d')
shown=https://sluice.example/sluice-VERSION.tar.gz
grep -qF "URL $shown" <<<"$block" && grep -qF 'sluice::static' <<<"$block" || fail "linking.md shows another way: $block"

project=$workspace/project
mkdir "$project"
cp "$tests/package/consumer/asks.c" "$tests/package/consumer/library.cpp" "$project"
{
  printf 'cmake_minimum_required(VERSION 3.25)\nproject(fetching LANGUAGES C CXX)\nadd_executable(program asks.c)\n'
  printf '%s\n' "${block/"$shown"/"file://$files/sluice-$version.tar.gz"}"
  printf 'add_executable(library library.cpp)\ntarget_link_libraries(library PRIVATE sluice::lib)\ntarget_compile_definitions(library PRIVATE SLUICE_CHECKS=0)\n'
} >"$project/CMakeLists.txt"
cmake -S "$project" -B "$workspace/build" -G Ninja -DCMAKE_BUILD_TYPE=Release >"$workspace/log" 2>&1 || { tail -n 20 "$workspace/log" && fail "configuring"; }
cmake --build "$workspace/build" -j "${JOBS:-2}" >"$workspace/log" 2>&1 || { tail -n 20 "$workspace/log" && fail "the build"; }
"$workspace/build/program" "$version" || fail "the program"
"$workspace/build/library" || fail "the header-only library"
! readelf -d "$workspace/build/program" | grep -q libsluice || fail "the program is linked with the shared library"
echo "$0: passed"
