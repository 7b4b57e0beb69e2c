#!/usr/bin/env bash
# The module for Bazel: buildifier finds no fault; Bazel builds programs with the archive of sources and the BUILD file over it, and they
# run. This Bazel is Debian's 4.2.3, which knows no modules: a WORKSPACE names the sources, and rules of its own stand for rules_cc, so
# MODULE.bazel is looked at only. Needs npm for buildifier; Bazel fetches nothing.
source "$(dirname "$0")/testing.sh"
unpack_recipes
module=$recipes/bazel/modules/sluice/$version

# The checksums are those of the files that lie there.
python3 - "$module" "$files/sluice-$version.tar.gz" "$version" <<'END_OF_PYTHON' || fail "source.json or metadata.json"
import base64, hashlib, json, pathlib, sys
module, archive, version = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
integrity = lambda path: "sha256-" + base64.b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()
source = json.loads((module / "source.json").read_text())
assert source["integrity"] == integrity(archive) and source["strip_prefix"] == f"sluice-{version}"
assert source["overlay"] == {name: integrity(module / "overlay" / name) for name in ("BUILD.bazel", "MODULE.bazel")}
assert (module / "MODULE.bazel").read_bytes() == (module / "overlay/MODULE.bazel").read_bytes()
assert f'version = "{version}"' in (module / "MODULE.bazel").read_text()
assert json.loads((module.parent / "metadata.json").read_text())["versions"] == [version]
END_OF_PYTHON
if command -v npm >/dev/null && timeout 300 npm install --silent --prefix "$workspace/npm" @bazel/buildifier@8.2.1 >"$workspace/log" 2>&1; then
  buildifier=("$workspace/npm/node_modules/.bin/buildifier" --mode=check --lint=warn)
  "${buildifier[@]}" "$module/MODULE.bazel" "$module/overlay/BUILD.bazel" || fail buildifier
  sed 's/alwayslink = True/alwayslink=True/' "$module/overlay/BUILD.bazel" >"$workspace/BUILD.bazel"
  ! "${buildifier[@]}" "$workspace/BUILD.bazel" >/dev/null 2>&1 || fail "a fault is not seen by buildifier: this test could not fail"
else
  echo "$0: buildifier could not be had from npm"
fi

command -v bazel >/dev/null || skip "no bazel (scripts/setup --release)"
project=$workspace/project
mkdir -p "$project" "$workspace"/rules/{cc/cc,java/java}
unpack_sources
cp "$module/overlay/BUILD.bazel" "$sources"
touch "$sources/WORKSPACE" "$workspace"/rules/{cc,java}/WORKSPACE "$workspace"/rules/{cc/cc,java/java}/BUILD
rules() { for rule in "$@"; do echo "$rule = native.$rule"; done; }
rules cc_{binary,import,library,proto_library,test,toolchain,toolchain_suite} >"$workspace/rules/cc/cc/defs.bzl"
rules java_{binary,import,library,package_configuration,plugin,runtime,toolchain} >"$workspace/rules/java/java/defs.bzl"
printf 'local_repository(name = "%s", path = "%s")\n' sluice "$sources" rules_cc "$workspace/rules/cc" rules_java "$workspace/rules/java" >"$project/WORKSPACE"
cp "$tests/package/consumer"/{asks.c,arena.cpp,library.cpp,news.cpp} "$project"
cat >"$project/BUILD.bazel" <<'END_OF_BUILD'
cc_binary(name = "asks_lib", srcs = ["asks.c"], deps = ["@sluice//:lib"])
cc_binary(name = "asks_malloc", srcs = ["asks.c"], malloc = "@sluice//:malloc", deps = ["@sluice//:lib"])
cc_binary(name = "asks_preload", srcs = ["asks.c"], deps = ["@sluice//:preload"])
cc_binary(name = "news_malloc", srcs = ["news.cpp"], copts = ["-std=c++20"], malloc = "@sluice//:malloc", deps = ["@sluice//:lib"])
cc_binary(name = "library", srcs = ["library.cpp"], copts = ["-std=c++20"], deps = ["@sluice//:lib"])
END_OF_BUILD
bazel() { (cd "$project" && command bazel --output_user_root="$workspace/bazel" "$@"); }
trap 'bazel shutdown >/dev/null 2>&1 || true; chmod -R u+w "$workspace"; rm -rf "$workspace"' EXIT
bazel build --nosandbox_debug --jobs="${JOBS:-2}" //... @sluice//:libsluice.so.1 @sluice//:libsluice-secure.so.1 >"$workspace/log" 2>&1 ||
  { tail -n 40 "$workspace/log" && fail "bazel build"; }
cd "$project/bazel-bin"
./asks_lib absent || fail asks_lib
for way in malloc preload; do "./asks_$way" "$version" || fail "asks_$way"; done
./news_malloc || fail news_malloc
./library || fail library
readelf -d asks_preload | grep -q 'NEEDED.*libsluice\.so\.1' || fail "asks_preload is not linked with the shared library"
! readelf -d asks_malloc | grep -q libsluice || fail "asks_malloc is linked with the shared library"
for kind in sluice sluice-secure; do
  library=$project/bazel-bin/external/sluice/lib$kind.so.1
  says '"schema": "sluice-stats"' env LD_PRELOAD="$library" SLUICE_STATS=json ls /
  LD_PRELOAD=$library ./asks_lib "$version" || fail "$library, preloaded"
  [[ $(readelf -dW "$library" | grep -c NEEDED) == 1 ]] || fail "$library needs more than libc"
  nm -D --defined-only "$library" | grep -q ' sluice_version@@SLUICE_1.0$' || fail "$library has no version of its symbols"
done
# What CMake's library exports, this one does too.
exported() { nm -D --defined-only "$1" | sed 's/^[0-9a-f]* . //' | sort; }
exported "$project/bazel-bin/external/sluice/libsluice.so.1" >"$workspace/exported"
while read -r name; do grep -qE "^$name(@|$)" "$workspace/exported" || fail "libsluice.so.1 does not export $name"; done \
  < <(sed -n 's/^SLUICE_SYMBOL(\([^,]*\),.*/\1/p' "$sources/preload/symbols.def" | grep -v '^\(thrd_create\|cfree\)$')
echo "$0: passed"
