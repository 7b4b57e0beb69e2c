# libsluice-musl.so, libsluice-secure-musl.so and libsluice-musl.a for musl, by zig, which has its headers and those of a C++
# library for it. Run on this machine, with programs that musl-gcc compiles. Sourced by scripts/port.
source "$repo_root/scripts/lib/ports/zig.sh"
source "$repo_root/scripts/lib/ports/debian.sh"

lua=$build/lua

build_libraries() {
  configure_by_zig "$(uname -m)-linux-musl" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$(uname -m)" \
    -DSLUICE_NAME_SUFFIX=-musl -DSLUICE_TESTS=OFF -DSLUICE_COMMAND=OFF -DSLUICE_SCENARIOS=OFF -DCMAKE_SHARED_LINKER_FLAGS=-Wl,--strip-debug &&
    cmake --build "$build" --target sluice_preload sluice_secure_preload sluice_static -- -j "$jobs"
}

build_port() {
  install_tools
  say "building $port"
  quietly build_libraries
  built=$build/lib/libsluice-musl.so
}

# What must hold of the file, whatever runs: no symbol of glibc's, and thread-local storage that musl's loader gives at start.
look_at_file() {
  local library=$1 dynamic symbols
  dynamic=$(readelf -dW "$library") symbols=$(readelf --dyn-syms -W "$library")
  [[ $(grep -c '(NEEDED)' <<<"$dynamic") -eq 1 && $dynamic == *'Shared library: [libc.so]'* ]] ||
    fail "$library needs more than musl's libc.so: $dynamic"
  [[ $symbols != *GLIBC* && $symbols != *__tls_get_addr* ]] || fail "$library has symbols of glibc"
  # Names behind which musl has a malloc of its own.
  ! grep -qE ' __libc_(malloc|calloc|realloc|free|memalign)$' <<<"$symbols" || fail "$library defines what is musl's own"
  [[ $dynamic == *STATIC_TLS* && $dynamic == *NOW* && $dynamic == *NODELETE* ]] || fail "$library lacks a flag: $dynamic"
  local name
  for name in malloc free aligned_alloc memalign malloc_usable_size reallocarray _Znwm _ZdlPvm; do
    grep -qE " (FUNC|NOTYPE) .* $name\$" <<<"$symbols" || fail "$library does not export $name"
  done
}

fetch_lua() {
  [[ -x $lua ]] && return
  from_debian bookworm deb-src lua5.4
  rm -rf "$build/lua-source"
  mkdir -p "$build/lua-source"
  tar -xf "$build"/apt/lua5.4_*.orig.tar.* -C "$build/lua-source" --strip-components 1
  rm -rf "$build/apt" "$build/lua-source/src/luac.c"
  quietly musl-gcc -O1 -w -DLUA_USE_POSIX -DLUA_USE_DLOPEN "$build"/lua-source/src/*.c -o "$lua" -lm
}

# expect LIBRARY VARIABLE OUTPUT PROGRAM ARGUMENT...: with status 0.
expect() {
  local output status=0
  output=$(timeout 120 env -i PATH=/usr/bin:/bin "$2" LD_PRELOAD="$1" "${@:4}" 2>/dev/null) || status=$?
  [[ $status -eq 0 && $output == "$3" ]] || fail "$(basename "$1"), $2, $4: status $status: $output"
}

run_programs() {
  local library variable
  local source=$repo_root/tests/preload/musl_program.c
  # What sluice::static tells the linker: the program itself does not call all that its libraries may.
  local whole=-Wl,-u,malloc,-u,mallinfo,-u,_Znwm,-u,sluice_version
  quietly musl-gcc -O1 -fno-builtin -Wall -Wextra -I "$repo_root/lib/include" "$source" -o "$build/program" -pthread
  quietly musl-gcc -static -O1 -fno-builtin -I "$repo_root/lib/include" "$source" "$whole" "$build/lib/libsluice-musl.a" \
    -o "$build/static_program"
  for library in "$build"/lib/libsluice{,-secure}-musl.so; do
    local kind=()
    [[ $library == *-secure-* ]] && kind=(secure)
    for variable in A=1 SLUICE_STATS=json:"$build/statistics" SLUICE_FRAME_CHECKS=1 SLUICE_BACKGROUND=1 SLUICE_GUARD_RATE=50; do
      expect "$library" "$variable" 'reached the end' "$build/program" "${kind[@]}"
    done
    grep -q '"schema": "sluice-stats"' "$build/statistics" || fail "no statistics were written"
    expect "$library" A=1 $'250000\t4\tfalse' "$lua" -e '
      local t = {}
      for round = 1, 5 do for i = 1, 50000 do t[#t + 1] = ("x"):rep(i % 300) .. i end end
      print(#t, #t[1000] - #("x"):rep(1000 % 300), (pcall(string.rep, "x", 1 << 40)))'
  done
  expect "" A=1 'reached the end' "$build/static_program"
}

test_port() {
  command -v musl-gcc >/dev/null || fail "musl-gcc is missing (Debian: musl-tools)"
  local library
  for library in "$build"/lib/libsluice{,-secure}-musl.so; do look_at_file "$library"; done
  fetch_lua
  say "running programs of musl"
  run_programs
  where="on musl, on this machine"
}
