#!/usr/bin/env bash
# The package for Spack: built from the archive of sources with and without its variants; its own tests pass, and the projects of
# tests/package build with it. Spack is not at hand: spack_stand_in.py stands for it, with the machine's libraries. Needs npm for
# Chart.js.
source "$(dirname "$0")/testing.sh"
unpack_recipes
package=$recipes/spack/spack_repo/sluice/packages/sluice/package.py
grep -q 'namespace: sluice' "$recipes/spack/spack_repo/sluice/repo.yaml" || fail "repo.yaml"

# build NAME VARIANT...: in $workspace/NAME.
build() {
  mkdir -p "$workspace/$1/downloads"
  ln -sf "$workspace"/downloads/* "$workspace/$1/downloads/"
  CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-2} timeout 1800 python3 -B "$tests/dist/spack_stand_in.py" "$package" "$workspace/$1" "${@:2}" >"$workspace/log" 2>&1 ||
    { tail -n 40 "$workspace/log" && fail "the package, ${*:2}"; }
}
mkdir "$workspace/downloads"
chart_js "$workspace/downloads"
build usual
says 'test_command passed' cat "$workspace/log"
says 'test_preload passed' cat "$workspace/log"
prefix=$workspace/usual/prefix
[[ -f $prefix/share/man/man1/sluice.1 && ! -e $prefix/lib/sluice/scenarios ]] || fail "other files than those asked for"
grep -qF 'Chart.js v3.9.1' "$prefix/bin/sluice" || fail "reports have no charts"
consumers "$prefix"

build other ~command ~arena +checked
says 'test_command skipped' cat "$workspace/log"
says 'test_preload passed' cat "$workspace/log"
[[ ! -e $workspace/other/prefix/bin ]] || fail "the command is there, though not asked for"
for setting in SLUICE_ARENA:BOOL=OFF SLUICE_CHECKED:BOOL=ON SLUICE_SCENARIOS:BOOL=OFF; do
  grep -qxF "$setting" "$workspace/other/build/CMakeCache.txt" || fail "the build was not configured with $setting"
done
sed -i 's/sha256="[0-9a-f]/&0/' "$package"
! python3 -B "$tests/dist/spack_stand_in.py" "$package" "$workspace/wrong" >"$workspace/log" 2>&1 || fail "another archive is taken"
says 'the checksum is' cat "$workspace/log"
echo "$0: passed"
