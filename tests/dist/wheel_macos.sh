#!/usr/bin/env bash
# The wheels for macOS: their libraries are what such files must be, and an emulated process runs on them as scripts/port has it; a part of its tests
# here. What the package's Python does on macOS is tested by telling it that this is macOS: no Python of macOS runs it.
source "$(dirname "$0")/testing.sh"
source "$tests/dist/wheels.sh"
repo_root=$tests/.. port="the system's library" build=$workspace
folder=$(realpath "$repo_root")/build/port
say() { printf '%s: %s\n' "$0" "$*"; }
# shellcheck source=scripts/lib/ports/zig.sh
source "$repo_root/scripts/lib/ports/zig.sh"
(fail() { skip "$*"; } && install_tools)
export ZIG_GLOBAL_CACHE_DIR=$folder/cache ZIG_LOCAL_CACHE_DIR=$folder/local-cache
mkdir "$workspace/tools"

for processor in aarch64 x86_64; do
  platform=macosx_12_0_${processor/aarch64/arm64}
  wheel_for "$platform" || fail "pip finds no wheel for $platform: $(cat "$workspace/log")"
  "$environment/bin/python" -B "$tests/dist/wheel_macos_test.py" "$packages" || fail "the package of $wheel, told that this is macOS"
  make_tool cc cc -target "$processor-macos.$macos"
  quietly build_system_library
  for library in "$packages"/sluice_malloc/libsluice{,-secure}.dylib; do
    "$python" "$tests/macos/file_test.py" "$library" "$processor" "$tests/../preload/symbols.def" || fail "$library of $wheel is not as it must be"
    ! grep -qF "$(realpath "$tests/..")/" "$library" || fail "$library of $wheel names the folder that it was built in"
    chosen=(FirstCall Zones Contract Statistics)
    [[ $library != *-secure* ]] || chosen=(FirstCall Contract Statistics Mistakes)
    timeout 600 "$python" "$tests/macos/run_test.py" "$library" "$processor" "$build/system.dylib" "${chosen[@]}" || fail "the emulated process on $library of $wheel"
  done
done
echo "$0: passed"
