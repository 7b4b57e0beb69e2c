# The archives of a release. Sourced by scripts/release.

# archive NAME FOLDER [FILE]: FOLDER/NAME as NAME.tar.gz or FILE, in one order, of nobody's.
archive() {
  tar --create --directory "$2" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner "$1" | gzip -9n >"$output/${3:-$1.tar.gz}"
}

make_source() {
  say "packing the sources"
  local name=sluice-$version folder
  folder=$(mktemp -d)
  mkdir "$folder/$name"
  python3 -B "$repo_root/scripts/lib/project_files.py" >"$folder/list" || fail "the files cannot be listed"
  tar --create --directory "$repo_root" --files-from "$folder/list" | tar --extract --directory "$folder/$name"
  same_time "$folder/$name"
  archive "$name" "$folder"
  rm -rf "$folder"
}

make_binary() {
  say "packing what is installed"
  local name=sluice-$version-linux-$processor
  install_stage '' "$stages/$name" runtime development command documents
  same_time "$stages/$name"
  archive "$name" "$stages"
}
