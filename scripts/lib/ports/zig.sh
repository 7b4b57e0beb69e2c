# zig, a C and C++ compiler for other systems, and what reads and executes their files: from PyPI, into build/port/tools.
# Sourced by the ports that need it and by scripts/release, which say where $folder and $build are.

# Versions that the tests were seen to pass with.
tools=(ziglang==0.17.1 unicorn==2.1.4 lief==1.0.0)
python=$folder/tools/bin/python

install_tools() {
  local want="${tools[*]}"
  [[ $(cat "$folder/tools/installed" 2>/dev/null) == "$want" && -x $python ]] && return
  say "installing ${tools[*]}"
  rm -rf "$folder/tools"
  mkdir -p "$folder"
  python3 -m venv "$folder/tools" || fail "no virtual environment could be made (Debian: python3-venv)"
  "$python" -m pip install --quiet --disable-pip-version-check "${tools[@]}" || fail "pip install failed"
  printf '%s' "$want" >"$folder/tools/installed"
}

# make_tool NAME ARGUMENT...: a program that calls zig with these.
make_tool() {
  local file=$build/tools/$1
  shift
  printf '#!/bin/sh\nexec "%s" -m ziglang %s "$@"\n' "$python" "$*" >"$file"
  chmod +x "$file"
}

# configure_by_zig TARGET CMAKE_ARGUMENT...: for zig's TARGET, in the port's folder.
configure_by_zig() {
  export ZIG_GLOBAL_CACHE_DIR=$folder/cache ZIG_LOCAL_CACHE_DIR=$folder/local-cache
  # No cache of compilers would know this one.
  unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER
  mkdir -p "$build/tools"
  make_tool cc cc -target "$1"
  make_tool c++ c++ -target "$1"
  make_tool ar ar
  make_tool ranlib ranlib
  if [[ -f $build/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$repo_root" "$build/CMakeCache.txt"; then
    rm -rf "$build/CMakeCache.txt" "$build/CMakeFiles"
  fi
  cmake -S "$repo_root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$build/tools/cc" \
    -DCMAKE_CXX_COMPILER="$build/tools/c++" -DCMAKE_AR="$build/tools/ar" -DCMAKE_RANLIB="$build/tools/ranlib" "${@:2}"
}

macos=12.0 # the oldest that the libraries run on

# configure_for_macos PROCESSOR CMAKE_ARGUMENT...: the same for macOS on aarch64 or x86_64.
configure_for_macos() {
  configure_by_zig "$1-macos.$macos" -DCMAKE_SYSTEM_NAME=Darwin -DCMAKE_SYSTEM_PROCESSOR="$1" -DCMAKE_INSTALL_NAME_TOOL=/bin/true "${@:2}"
}

# build_system_library: what stands in for libSystem in an emulated process, system.dylib, by the compiler that make_tool made.
build_system_library() {
  "$build/tools/cc" -O2 -ffreestanding -fno-builtin -fno-sanitize=all -dynamiclib -install_name /usr/lib/system.dylib \
    -o "$build/system.dylib" "$repo_root/tests/macos/system.c"
}

# quietly COMMAND...: what it prints is shown when it fails.
quietly() {
  local log
  log=$(mktemp)
  "$@" >"$log" 2>&1 || { cat "$log" && rm -f "$log" && fail "building $port failed"; }
  rm -f "$log"
}
