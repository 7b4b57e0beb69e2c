# Debian packages, by dpkg's own tools from lib/packages/debian. Sourced by scripts/release.

# copyright_of_site FOLDER: of what the web site there has from its generator.
copyright_of_site() {
  local licence=$1/assets/zensical-licence.txt
  printf '\nFiles: usr/share/doc/sluice/html/assets/*\nCopyright: %s\nLicense: Expat\n' "$(sed -n 's/^Copyright (c) //p' "$licence")"
  sed -n '/^Permission/,$p' "$licence" | sed 's/^$/./; s/^/ /'
}

# make_deb NAME COMPONENT...
make_deb() {
  local name=$1 root=$debian/debian/$1
  shift
  install_stage "$root" /usr "$@"
  [[ ! -d $root/usr/share/man ]] || compress_manual "$root"
  local documents=$root/usr/share/doc/$name
  mkdir -p "$documents" "$root/DEBIAN"
  cp "$debian/debian/copyright" "$documents/copyright"
  [[ ! -d $documents/html ]] || copyright_of_site "$documents/html" >>"$documents/copyright"
  gzip -9n <"$debian/debian/changelog" >"$documents/changelog.Debian.gz"
  gzip -9n <"$repo_root/CHANGELOG.md" >"$documents/changelog.gz"
  if [[ $name == libsluice1 ]]; then
    printf '%s\n' "libsluice 1 libsluice1 (>= $version)" "libsluice-secure 1 libsluice1 (>= $version)" >"$root/DEBIAN/shlibs"
    echo "activate-noawait ldconfig" >"$root/DEBIAN/triggers"
  fi
  cd "$debian"
  local programs
  mapfile -t programs < <(find "$root" -type f -exec sh -c 'readelf -h "$1" 2>/dev/null | grep -qE "EXEC|DYN"' sh {} \; -print | sort)
  : >"$name.substvars"
  ((!${#programs[@]})) || dpkg-shlibdeps -T"$name.substvars" -S"$root" "${programs[@]}" || fail "dpkg-shlibdeps failed"
  dpkg-gencontrol -p"$name" -P"$root" -T"$name.substvars" || fail "dpkg-gencontrol failed"
  (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  same_time "$root"
  # With more threads there are other blocks.
  dpkg-deb --root-owner-group -Zxz --threads-max=1 --build "$root" "$output" >/dev/null || fail "dpkg-deb failed"
  cd "$repo_root"
}

make_debs() {
  say "making Debian packages"
  debian=$stages/debian
  mkdir -p "$debian/debian"
  cp "$repo_root/lib/packages/debian/control" "$debian/debian/control"
  local maintainer
  maintainer=$(sed -n 's/^Maintainer: //p' "$debian/debian/control")
  printf 'sluice (%s-1) unstable; urgency=medium\n\n  * Version %s; changelog.gz tells what is new.\n\n -- %s  %s\n' \
    "$version" "$version" "$maintainer" "$(date -R -d "@$SOURCE_DATE_EPOCH")" >"$debian/debian/changelog"
  {
    printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: sluice\n\n'
    printf 'Files: *\nCopyright: %s\nLicense: Expat\n' "$(sed -n 's/^Copyright (c) //p' "$repo_root/LICENSE")"
    sed -n '/^Permission/,$p' "$repo_root/LICENSE" | sed 's/^$/./; s/^/ /'
  } >"$debian/debian/copyright"
  system_build "lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)" -DSLUICE_ZSH_COMPLETIONS=zsh/vendor-completions
  make_deb libsluice1 runtime
  make_deb libsluice-dev development
  make_deb sluice command documents
}
