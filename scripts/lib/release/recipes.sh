# Recipes of package managers, which build from the archive of sources: each names its address and checksum. Sourced by scripts/release.

# integrity FILE: its checksum as Bazel writes it.
integrity() { printf 'sha256-%s' "$(openssl dgst -sha256 -binary "$1" | base64 -w0)"; }

# recipe SOURCE TARGET: a file of lib/packages with its words filled in.
recipe() {
  mkdir -p "$(dirname "$2")"
  sed -e "s|@VERSION@|$version|g" -e "s|@ADDRESS@|$address|g" -e "s|@SHA256@|$(sha256sum <"$archive_of_sources" | cut -d' ' -f1)|g" \
    -e "s|@SHA512@|$(sha512sum <"$archive_of_sources" | cut -d' ' -f1)|g" -e "s|@INTEGRITY@|$(integrity "$archive_of_sources")|g" "$1" >"$2"
  ! grep -nE '@[A-Z0-9_]+@' "$2" || fail "$1 has a word that nothing fills in"
}

# write_recipes FOLDER: all of them.
write_recipes() {
  local packages=$repo_root/lib/packages to=$1 file module=$1/bazel/modules/sluice/$version
  recipe "$packages/alpine/APKBUILD.in" "$to/alpine/APKBUILD"
  recipe "$packages/homebrew/sluice.rb.in" "$to/homebrew/sluice.rb"
  for file in vcpkg.json.in portfile.cmake.in usage; do recipe "$packages/vcpkg/ports/sluice/$file" "$to/vcpkg/ports/sluice/${file%.in}"; done
  for file in repo.yaml packages/sluice/package.py.in; do recipe "$packages/spack/spack_repo/sluice/$file" "$to/spack/spack_repo/sluice/${file%.in}"; done
  # A registry of Bazel's: overlay lies over the sources.
  recipe "$packages/bazel/metadata.json.in" "$to/bazel/modules/sluice/metadata.json"
  recipe "$packages/bazel/MODULE.bazel.in" "$module/MODULE.bazel"
  recipe "$packages/bazel/BUILD.bazel" "$module/overlay/BUILD.bazel"
  recipe "$packages/bazel/MODULE.bazel.in" "$module/overlay/MODULE.bazel"
  recipe "$packages/bazel/presubmit.yml" "$module/presubmit.yml"
  recipe "$packages/bazel/source.json.in" "$module/source.json.half"
  sed -e "s|BUILD_INTEGRITY|$(integrity "$module/overlay/BUILD.bazel")|" -e "s|MODULE_INTEGRITY|$(integrity "$module/overlay/MODULE.bazel")|" \
    "$module/source.json.half" >"$module/source.json"
  rm "$module/source.json.half"
}

make_recipes() {
  say "writing recipes"
  local name=sluice-$version-recipes folder
  folder=$(mktemp -d)
  write_recipes "$folder/$name"
  same_time "$folder/$name"
  archive "$name" "$folder"
  rm -rf "$folder"
}
