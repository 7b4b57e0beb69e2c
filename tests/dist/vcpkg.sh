#!/usr/bin/env bash
# The port for vcpkg: its portfile builds from the archive of sources, without and with the command; the projects of tests/package
# build with that, for release and for debugging. vcpkg is not at hand: vcpkg_stand_in.cmake stands for it, with the machine's
# libraries. Needs npm for Chart.js.
source "$(dirname "$0")/testing.sh"
unpack_recipes
port=$recipes/vcpkg/ports/sluice
# What vcpkg asks of a manifest, and the features that the portfile speaks of are those of the manifest.
python3 - "$port" "$version" <<'END_OF_PYTHON' || fail "vcpkg.json"
import json, pathlib, re, sys
port, version = pathlib.Path(sys.argv[1]), sys.argv[2]
manifest = json.loads((port / "vcpkg.json").read_text())
known = {"name", "version", "description", "homepage", "license", "supports", "dependencies", "default-features", "features"}
assert not set(manifest) - known, f"unknown fields: {set(manifest) - known}"
assert manifest["name"] == port.name and manifest["version"] == version
dependencies = manifest["dependencies"] + sum((feature.get("dependencies", []) for feature in manifest["features"].values()), [])
for name in [dependency if isinstance(dependency, str) else dependency["name"] for dependency in dependencies]:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name), name
assert all(feature["description"] for feature in manifest["features"].values())
assert set(manifest["default-features"]) <= set(manifest["features"])
text = (port / "portfile.cmake").read_text()
used = set(re.findall(r'"(\w+)" IN_LIST FEATURES', text)) | set(re.findall(r"^ {8}(\w+) SLUICE_", text, re.MULTILINE))
assert used == set(manifest["features"]), f"the portfile has the features {used}"
assert text.count("SHA512 ") == text.count("vcpkg_download_distfile(") and "@" not in text
END_OF_PYTHON

# build NAME FEATURES: the port in $workspace/NAME/packages.
build() {
  mkdir -p "$workspace/$1/downloads"
  ln -sf "$workspace"/downloads/* "$workspace/$1/downloads/"
  CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-2} timeout 1800 cmake -DPORT_FOLDER="$port" -DVERSION="$version" -DFEATURES="$2" -DROOT="$workspace/$1" \
    -P "$tests/dist/vcpkg_stand_in.cmake" >"$workspace/log" 2>&1 || { tail -n 40 "$workspace/log" && fail "the portfile with the features $2"; }
}
mkdir "$workspace/downloads"
chart_js "$workspace/downloads"
build all 'arena;command'
prefix=$workspace/all/packages
for file in lib/libsluice.a lib/libsluice.so.1 lib/libsluice-secure.so debug/lib/libsluice.a share/sluice/copyright share/sluice/usage include/sluice/sluice.h; do
  [[ -e $prefix/$file ]] || fail "no $file"
done
for folder in debug/include debug/share lib/cmake bin share/man share/doc; do [[ ! -e $prefix/$folder ]] || fail "vcpkg does not want $folder"; done
says "$version" "$prefix/tools/sluice/bin/sluice" --version
says "$prefix/tools/sluice/lib/libsluice.so.1" "$prefix/tools/sluice/bin/sluice" run -- printenv LD_PRELOAD
[[ -f $prefix/tools/sluice/share/man/man1/sluice.1 ]] || fail "no manual page"
for type in Release Debug; do
  cmake -S "$tests/package/consumer" -B "$workspace/consumer" -G Ninja -DCMAKE_BUILD_TYPE="$type" -Dsluice_DIR="$prefix/share/sluice" -DEXPECTED_PREFIX="$prefix" \
    >"$workspace/log" 2>&1 && cmake --build "$workspace/consumer" >>"$workspace/log" 2>&1 || { cat "$workspace/log" && fail "find_package, $type"; }
  for way in asks_linked asks_static; do "$workspace/consumer/$way" "$version" || fail "$way, $type"; done
  for way in arena_preload arena_static; do "$workspace/consumer/$way" present || fail "$way, $type"; done
  readelf -d "$workspace/consumer/asks_linked" | grep RUNPATH | grep -q "packages/debug/lib" && debug=Debug || debug=Release
  [[ $debug == "$type" ]] || fail "a build for $type took the library for $debug"
  rm -rf "$workspace/consumer"
done
build least core
[[ ! -e $workspace/least/packages/tools ]] || fail "the command is there, though not asked for"
says '"schema": "sluice-stats"' env LD_PRELOAD="$workspace/least/packages/lib/libsluice.so" SLUICE_STATS=json ls /
sed -i 's/SHA512 ./SHA512 0/' "$port/portfile.cmake"
! cmake -DPORT_FOLDER="$port" -DVERSION="$version" -DFEATURES=core -DROOT="$workspace/other" -P "$tests/dist/vcpkg_stand_in.cmake" >"$workspace/log" 2>&1 ||
  fail "another archive is taken"
says 'another checksum' cat "$workspace/log"
echo "$0: passed"
