# The sources of the libraries for macOS, compiled with the headers of earlier SDKs, by the earlier versions of zig that have them.
# Nothing is linked or executed: what such a header does not declare, that system lacks. Sourced by scripts/port.
source "$repo_root/scripts/lib/ports/zig.sh"

# Version of macOS, version of zig, target.
sdks=(
  "12 0.11.0 aarch64-macos.12.0"
  "13 0.11.0 x86_64-macos.13.0"
  "14 0.13.0 aarch64-macos.12.0"
  "15 0.15.1 aarch64-macos.12.0"
)
flags=(-std=c++20 -O1 -Wall -Wextra -Wshadow -Wpointer-arith -Wcast-qual -Werror -fno-exceptions -fno-rtti
  -I "$repo_root/lib/src" -I "$repo_root/lib/include" -I "$repo_root/preload" -idirafter "$build/headers"
  -DSLUICE_BUILDING=1 -DSLUICE_MACHO=1 -DSLUICE_FRAMES=1)

# zig has these headers since 0.16 alone; Apple's SDKs have had them for long.
link_missing_headers() {
  local headers name
  headers=$("$python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')/lib/libc/include/any-darwin-any
  mkdir -p "$build/headers/mach-o"
  for name in dyld_images getsect; do ln -sfn "$headers/mach-o/$name.h" "$build/headers/mach-o/$name.h"; done
}

build_port() {
  local version
  install_tools
  link_missing_headers
  for version in $(printf '%s\n' "${sdks[@]}" | cut -d' ' -f2 | sort -u); do
    [[ -x $folder/zig-$version/ziglang/zig ]] && continue
    say "installing ziglang==$version"
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder/zig-$version" "ziglang==$version" ||
      fail "pip install failed"
  done
  built="no library, but compilers in $folder/zig-*"
}

# compile VERSION OF ZIG, TARGET, FLAG, SOURCE
compile() {
  local object
  object=$(mktemp --suffix=.o)
  "$folder/zig-$1/ziglang/zig" c++ -target "$2" "${flags[@]}" "$3" -c "$repo_root/$4" -o "$object"
  local status=$?
  rm -f "$object"
  ((status == 0)) || echo "$4 does not compile with $3"
  return "$status"
}

# compile_for MACOS VERSION TARGET: with the oldest headers all that goes into the libraries, with others what knows macOS.
compile_for() {
  local each sources=(lib/src/os/macos*.cpp preload/macho*.cpp) running=0 failed=0
  compile "$2" "$3" "-DEXPECTED_MACOS=$1" tests/macos/sdk.cpp || return
  [[ $1 != 12 ]] || sources+=(preload/api.cpp lib/src/{base,pages,guarded,profile,heap,arena,stats}/*.cpp)
  local runs=()
  for each in "${sources[@]}"; do
    case $each in
      # The list in lib/CMakeLists.txt: what secure builds alone call.
      lib/src/heap/block_state.cpp | lib/src/heap/link.cpp | lib/src/heap/reuse.cpp | lib/src/base/secrets.cpp) ;;
      lib/src/pages/canary.cpp | lib/src/pages/fence.cpp | lib/src/pages/quarantine.cpp) ;;
      *) runs+=("-DSLUICE_ARENA=1 $each") ;;
    esac
    [[ $each == lib/src/@(os|arena)/* || $each == preload/macho_static.cpp ]] || runs+=("-DSLUICE_SECURE=1 $each")
  done
  for each in "${runs[@]}"; do
    if ((running >= jobs)); then
      wait -n || failed=1
      running=$((running - 1))
    fi
    # shellcheck disable=SC2086 # no word has a blank
    compile "$2" "$3" $each &
    running=$((running + 1))
  done
  while ((running > 0)); do
    wait -n || failed=1
    running=$((running - 1))
  done
  return "$failed"
}

test_port() {
  local sdk number version target
  export ZIG_GLOBAL_CACHE_DIR=$folder/cache ZIG_LOCAL_CACHE_DIR=$folder/local-cache
  cd "$repo_root"
  for sdk in "${sdks[@]}"; do
    read -r number version target <<<"$sdk"
    say "compiling with the headers of macOS $number"
    quietly compile_for "$number" "$version" "$target"
  done
  where="compiled, and not executed"
}
