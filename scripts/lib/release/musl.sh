# The build for musl: lib/packages/alpine's APKBUILD builds from the archive of sources, by zig, and installs into a folder for each package,
# split as abuild does. The Alpine packages and the Python wheel for musl take their files from it. Sourced by scripts/release.

alpine=$stages/alpine

# musl_compiler NAME: zig's compiler for musl, in $alpine/tools. CMake sees zig link programs with static libraries of its cache, musl
# among them, and names these for shared libraries too: left out.
musl_compiler() {
  printf '#!/bin/sh\nfor argument; do\n  shift\n  case $argument in "%s"/*.a) ;; *) set -- "$@" "$argument" ;; esac\ndone\nexec "%s" -m ziglang %s -target %s "$@"\n' \
    "$folder/cache" "$python" "$1" "$processor-linux-musl" >"$alpine/tools/$1"
  chmod +x "$alpine/tools/$1"
}

# move_to NAME PATH...: from the tree of all.
move_to() {
  local name=$1 path
  shift
  for path in "$@"; do
    mkdir -p "$alpine/$name/$(dirname "$path")"
    mv "$pkgdir/$path" "$alpine/$name/$path"
  done
}

# run_apkbuild: into $alpine, a folder for each package, split as abuild does.
run_apkbuild() {
  install_tools
  rm -rf "$alpine"
  mkdir -p "$alpine/tools"
  musl_compiler cc
  musl_compiler c++
  tar -xzf "$archive_of_sources" -C "$alpine"
  recipe "$repo_root/lib/packages/alpine/APKBUILD.in" "$alpine/APKBUILD"
  source "$alpine/APKBUILD"
  local pkgdir=$alpine/sluice map="-ffile-prefix-map=$alpine=/usr/src"
  # A shell of its own, which ends at the first command that fails.
  env -u CMAKE_C_COMPILER_LAUNCHER -u CMAKE_CXX_COMPILER_LAUNCHER CC="$alpine/tools/cc" CXX="$alpine/tools/c++" CFLAGS="$map" CXXFLAGS="$map" \
    LDFLAGS=-Wl,--strip-debug CMAKE_BUILD_PARALLEL_LEVEL="$jobs" ZIG_GLOBAL_CACHE_DIR="$folder/cache" ZIG_LOCAL_CACHE_DIR="$folder/local-cache" \
    pkgdir="$pkgdir" bash -ec 'source "$1/APKBUILD" && cd "$1/sluice-$pkgver"; build; package' bash "$alpine" >"$alpine/log" 2>&1 ||
    { tail -n 40 "$alpine/log" && fail "the APKBUILD failed"; }
  strip --strip-debug "$pkgdir"/usr/lib/*.a
  move_to sluice-static usr/lib/libsluice.a
  move_to sluice-dev usr/include usr/lib/cmake usr/lib/pkgconfig usr/lib/libsluice.so usr/lib/libsluice-secure.so
  move_to sluice-doc usr/share/doc
  rmdir "$pkgdir/usr/share"
}

# build_for_musl: once for each archive of sources, whatever packs it.
build_for_musl() {
  local archive
  archive=$(sha512sum <"$archive_of_sources")
  [[ $(cat "$alpine/built" 2>/dev/null) != "$archive" ]] || return 0
  say "building for musl"
  run_apkbuild
  printf '%s\n' "$archive" >"$alpine/built"
}
