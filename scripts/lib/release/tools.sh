# What PyPI has for making the files of a release. Sourced by scripts/release.

# zig, where the ports have it.
folder=$repo_root/build/port
source "$repo_root/scripts/lib/ports/zig.sh"

# tools_of_pypi FOLDER REQUIREMENT...: commands of these in FOLDER/bin.
tools_of_pypi() {
  local folder=$1 want="${*:2}"
  [[ $(cat "$folder/installed" 2>/dev/null) == "$want" && -x $folder/bin/python ]] && return
  say "installing $want"
  rm -rf "$folder"
  python3 -m venv "$folder" || fail "no virtual environment could be made (Debian: python3-venv)"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "${@:2}" || fail "pip install failed"
  printf '%s' "$want" >"$folder/installed"
}
