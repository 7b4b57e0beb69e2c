# The libraries and the command for macOS, by zig; both are executed in an emulated process. Sourced by scripts/port.
source "$repo_root/scripts/lib/ports/zig.sh"

processor=${port#macos-}
attacks=$build/attacks

# The command's libraries, without what else lies in the folder of this system's headers.
link_headers() {
  local library
  mkdir -p "$build/headers"
  for library in CLI fmt nlohmann; do
    [[ -d /usr/include/$library ]] || fail "/usr/include/$library is missing (scripts/setup installs it)"
    ln -sfn "/usr/include/$library" "$build/headers/$library"
  done
}

build_library() {
  configure_for_macos "$processor" -DSLUICE_COMMAND=ON -DSLUICE_COMMAND_HEADERS="$build/headers" &&
    cmake --build "$build" --target sluice_preload sluice_secure_preload sluice_static sluice_command -- -j "$jobs" &&
    build_system_library &&
    "$build/tools/cc" -O1 -fno-builtin -fno-sanitize=all -Wall -Wextra -Werror -Wno-unguarded-availability-new -D_FORTIFY_SOURCE=0 \
      -I "$repo_root/lib/include" -o "$build/static_program" "$repo_root/tests/macos/static_program.c" \
      -Wl,-force_load,"$build/lib/libsluice.a" "$build/system.dylib" &&
    "$build/tools/cc" -O1 -fno-builtin -fno-optimize-sibling-calls -fno-sanitize=all -Wall -Wextra -Werror -D_FORTIFY_SOURCE=0 \
      -o "$build/profile_program" "$repo_root/tests/macos/profile_program.c" &&
    build_unwinder
}

# What libSystem has for exceptions, from the compiler's own sources.
build_unwinder() {
  local source
  source=$("$python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')/lib/libunwind
  "$build/tools/c++" -O2 -fno-rtti -fno-exceptions -funwind-tables -nostdlib++ -fno-sanitize=all -DNDEBUG -D_LIBUNWIND_IS_NATIVE_ONLY \
    -I "$source/include" -dynamiclib -install_name /usr/lib/unwind.dylib -o "$build/unwind.dylib" "$source/src/libunwind.cpp" \
    "$source/src/UnwindLevel1.c" "$source/src/UnwindLevel1-gcc-ext.c" "$source"/src/UnwindRegisters{Save,Restore}.S
}

build_port() {
  install_tools
  say "building $port"
  link_headers
  quietly build_library
  built=$build/lib/libsluice.dylib
}

build_attacks() {
  local source
  rm -rf "$attacks"
  mkdir -p "$attacks"
  for source in "$repo_root"/tests/attacks/*.c; do
    # One refers to operator new and delete, where there are any.
    "$build/tools/cc" -O1 -fno-builtin -fno-sanitize=all -D_FORTIFY_SOURCE=0 -w -Wl,-undefined,dynamic_lookup \
      -I "$repo_root/tests/macos" -o "$attacks/$(basename "$source" .c)" "$source" || return
  done
}

# What the command goes by reads files that a compiler for macOS has made, on this machine.
build_reader() {
  g++ -std=c++20 -O1 -DFMT_HEADER_ONLY -I "$repo_root/preload/cli" "$repo_root"/tests/preload/cli/macho_test.cpp \
    "$repo_root"/preload/cli/macho/*.cpp -lgtest -lgtest_main -pthread -o "$build/macho_test"
}

test_port() {
  local library secure=$build/lib/libsluice-secure.dylib
  for library in "$built" "$secure"; do
    say "testing the file $(basename "$library")"
    "$python" "$repo_root/tests/macos/file_test.py" "$library" "$processor" "$repo_root/preload/symbols.def" ||
      fail "the file is not as it must be"
    say "executing it in an emulated process"
    timeout 600 "$python" "$repo_root/tests/macos/run_test.py" "$library" "$processor" "$build/system.dylib" ||
      fail "the emulated process failed"
  done
  say "executing a program that libsluice.a is linked into"
  timeout 600 "$python" "$repo_root/tests/macos/run_test.py" "$build/static_program" "$processor" "$build/system.dylib" ||
    fail "the emulated process failed"
  say "executing a program that is profiled"
  timeout 600 "$python" "$repo_root/tests/macos/profile_test.py" "$built" "$processor" "$build/system.dylib" \
    "$build/profile_program" || fail "the profile is not as it must be"
  say "executing the command"
  timeout 600 "$python" "$repo_root/tests/macos/command_test.py" "$build/bin/sluice" "$processor" "$build/system.dylib" \
    "$built" "$build/unwind.dylib" || fail "the command failed"
  quietly build_attacks
  say "executing programs that make mistakes with the heap"
  timeout 600 "$python" "$repo_root/tests/macos/attacks_test.py" "$secure" "$processor" "$build/system.dylib" "$attacks" ||
    fail "mistakes are not found as they must be"
  quietly build_reader
  say "reading the files as the command does"
  local name=arm64
  [[ $processor == aarch64 ]] || name=$processor
  SLUICE_MACHO_FILES=$name=$build/bin/sluice:$name=$build/static_program:$name=$built:$name=$secure \
    timeout 600 "$build/macho_test" --gtest_filter=-*Damaged* >"$build/macho_test.log" ||
    { tail -20 "$build/macho_test.log" && fail "the files are read wrongly"; }
  where="executed under emulation, not on a Mac"
}
