#!/usr/bin/env bash
# The wrap for Meson: a project that has the archive of sources as a subproject builds with each dependency of the wrap, and runs.
# Needs PyPI.
source "$(dirname "$0")/testing.sh"
python_tools meson==1.12.1
wrap=$tests/../lib/packages/meson
[[ $(grep -c -F "sluice-$version" "$wrap/sluice.wrap") == 2 ]] || fail "sluice.wrap is of another version"

# As lib/docs/install.md says.
project=$workspace/project
mkdir -p "$project/subprojects/packagefiles/sluice"
cp "$wrap/sluice.wrap" "$project/subprojects"
cp "$wrap/meson.build" "$wrap/build.cmake" "$project/subprojects/packagefiles/sluice"
cp "$files/sluice-$version.tar.gz" "$project/subprojects/packagefiles"
cp "$tests/package/meson/meson.build" "$tests/package/consumer"/{asks.c,arena.cpp,library.cpp,news.cpp} "$project"

"$tools/meson" setup --fatal-meson-warnings "$workspace/build" "$project" >"$workspace/log" 2>&1 || { tail -n 40 "$workspace/log" && fail "meson setup"; }
timeout 1800 "$tools/meson" compile -C "$workspace/build" >"$workspace/log" 2>&1 || { tail -n 40 "$workspace/log" && fail "meson compile"; }
cd "$workspace/build"
./asks_lib absent || fail asks_lib
./arena_lib absent || fail arena_lib
for way in linked static; do
  "./asks_$way" "$version" || fail "asks_$way"
  "./arena_$way" present || fail "arena_$way"
done
./news_static || fail news_static
./library || fail library
readelf -d asks_linked | grep -q 'NEEDED.*libsluice\.so\.1' || fail "asks_linked is not linked with the shared library"
! readelf -d asks_static | grep -q libsluice || fail "asks_static is linked with the shared library"
LD_PRELOAD=$workspace/build/subprojects/sluice-$version/libsluice-secure.so ./asks_lib "$version" || fail "libsluice-secure.so, preloaded"
echo "$0: passed"
