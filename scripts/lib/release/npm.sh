# The package for npm: the shared libraries and lib/bindings/node, as npm packs. Sourced by scripts/release.

make_npm() {
  say "making the package for npm"
  local root=$stages/npm/package here=$repo_root/lib/bindings/node library word=$processor
  case $processor in
    x86_64) word=x64 ;;
    aarch64) word=arm64 ;;
  esac
  mkdir -p "$root"
  install_stage "$stages/npm-libraries" /usr runtime
  cp "$here"/*.js "$here/README.md" "$repo_root/LICENSE" "$root"
  sed -e "s|@VERSION@|$version|" -e "s|@PROCESSOR@|$word|" "$here/package.json.in" >"$root/package.json"
  # Without numbers: such a package has no links, and nothing is linked with these.
  for library in "$stages"/npm-libraries/usr/lib/*.so.*; do cp "$library" "$root/$(basename "${library%.so.*}").so"; done
  same_time "$stages/npm"
  archive package "$stages/npm" "sluice-malloc-$version-linux-$word.tgz"
}
