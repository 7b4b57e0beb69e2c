# Packages and sources of a Debian release, by apt-get with folders of its own: nothing is installed. Sourced by ports.

keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# from_debian RELEASE deb PACKAGE... or from_debian RELEASE deb-src PACKAGE...: as files in $build/apt, with what they need.
from_debian() {
  local apt=$build/apt log=$build/apt.log
  command -v apt-get >/dev/null && [[ -f $keyring ]] || fail "no apt-get with Debian's keys here (package debian-archive-keyring)"
  rm -rf "$apt"
  mkdir -p "$apt/lists/partial" "$apt/archives/partial"
  touch "$apt/status"
  echo "$2 [arch=amd64 signed-by=$keyring] http://deb.debian.org/debian $1 main" >"$apt/sources.list"
  local options=(-q -y -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::Lists=$apt/lists"
    -o "Dir::Cache=$apt" -o "Dir::State::status=$apt/status" -o APT::Architecture=amd64 -o Acquire::Languages=none -o Dpkg::Use-Pty=0)
  say "fetching ${*:3} of Debian's $1"
  (
    cd "$apt" && apt-get "${options[@]}" update &&
      if [[ $2 == deb ]]; then
        apt-get "${options[@]}" install -d --no-install-recommends "${@:3}"
      else
        apt-get "${options[@]}" source --download-only "${@:3}"
      fi
  ) >"$log" 2>&1 || { tail -5 "$log" && fail "${*:3} could not be fetched"; }
}
