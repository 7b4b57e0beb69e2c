# libsluice.dylib for macOS, by zig; executed in an emulated process. Sourced by scripts/port.
source "$repo_root/scripts/lib/ports/zig.sh"

macos=12.0 # the oldest that the library runs on
processor=${port#macos-}

build_library() {
  configure_by_zig "$processor-macos.$macos" -DCMAKE_SYSTEM_NAME=Darwin -DCMAKE_SYSTEM_PROCESSOR="$processor" \
    -DCMAKE_INSTALL_NAME_TOOL=/bin/true &&
    cmake --build "$build" --target sluice_preload -- -j "$jobs" &&
    "$build/tools/cc" -O2 -ffreestanding -fno-builtin -fno-sanitize=all -dynamiclib -install_name /usr/lib/system.dylib \
      -o "$build/system.dylib" "$repo_root/tests/macos/system.c"
}

build_port() {
  install_tools
  say "building $port"
  quietly build_library
  built=$build/lib/libsluice.dylib
}

test_port() {
  say "testing the file"
  "$python" "$repo_root/tests/macos/file_test.py" "$built" "$processor" "$repo_root/preload/symbols.def" ||
    fail "the file is not as it must be"
  say "executing it in an emulated process"
  timeout 600 "$python" "$repo_root/tests/macos/run_test.py" "$built" "$processor" "$build/system.dylib" ||
    fail "the emulated process failed"
  where="executed under emulation, not on a Mac"
}
