# RPM packages, by rpmbuild from lib/packages/rpm. Sourced by scripts/release.

make_rpms() {
  say "making RPM packages"
  local root=$stages/rpm top=$stages/rpmbuild
  mkdir -p "$top"
  system_build lib64 -DSLUICE_ZSH_COMPLETIONS=zsh/site-functions
  install_stage "$root" /usr runtime development command documents
  compress_manual "$root"
  same_time "$root"
  sed -e "s|@VERSION@|$version|g" -e "s|@STAGE@|$root|g" "$repo_root/lib/packages/rpm/sluice.spec.in" >"$top/sluice.spec"
  # A compressor without threads, and nothing of this machine.
  rpmbuild -bb --quiet --define "_topdir $top" --define "_buildhost sluice" --define "use_source_date_epoch_as_buildtime 1" \
    --define "clamp_mtime_to_source_date_epoch 1" --define "source_date_epoch_from_changelog 0" --define "_binary_payload w9.gzdio" \
    --define "_docdir /usr/share/doc" "$top/sluice.spec" >"$package_build/log" 2>&1 || { cat "$package_build/log" && fail "rpmbuild failed"; }
  find "$top/RPMS" -name '*.rpm' -exec cp {} "$output" \;
}
