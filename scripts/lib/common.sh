# What the shell scripts in scripts/ share: messages, the repository's root, configuring and building a preset.
# Sourced, never run; open it to change how progress looks or how a preset is built.

repo_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
script_name=scripts/$(basename "$0")

# Two lanes unless the caller says otherwise: the smallest machine that this is meant for has two cores.
jobs=${JOBS:-2}

say() { printf '%s: %s\n' "$script_name" "$*"; }

fail() {
  printf '%s: error: %s\n' "$script_name" "$*" >&2
  exit 1
}

# elapsed: minutes and seconds since the script started, as 3m07s.
elapsed() { printf '%dm%02ds' $((SECONDS / 60)) $((SECONDS % 60)); }

heading() { printf '\n== %s (%s elapsed)\n' "$*" "$(elapsed)"; }

# configure PRESET [CMAKE ARGUMENTS]: quiet when all goes well, the whole output when it does not. A build folder that
# was made for another checkout (a moved or copied repository) is made anew, since cmake refuses to use it.
configure() {
  local preset=$1 log cache=$repo_root/build/$1/CMakeCache.txt
  shift
  if [[ -f $cache ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$repo_root" "$cache"; then
    say "build/$preset belongs to another checkout; making it anew"
    rm -rf "$repo_root/build/$preset"
  fi
  say "configuring preset $preset"
  log=$(mktemp)
  if ! (cd "$repo_root" && cmake --preset "$preset" "$@") >"$log" 2>&1; then
    cat "$log"
    rm -f "$log"
    fail "cmake --preset $preset failed"
  fi
  rm -f "$log"
}

# build PRESET [TARGET...]: everything, or the targets named.
build() {
  local preset=$1
  shift
  say "building preset $preset${*:+: $*}"
  (cd "$repo_root" && cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"}) || fail "the build of preset $preset failed"
}
