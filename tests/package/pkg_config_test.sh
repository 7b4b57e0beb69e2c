#!/bin/sh
# usage: pkg_config_test.sh COMPILER SOURCE OUTPUT VERSION
# Builds SOURCE with what pkg-config says of sluice and runs it on the shared library, and on the static one by the command of
# lib/docs/linking.md as it stands there; by that command also with clang's LeakSanitizer, which has an operator new of its own.
set -eu
compiler=$(command -v "$1") source=$2 output=$3 version=$4
page=$(dirname "$0")/../../lib/docs/linking.md
test "$(pkg-config --modversion sluice)" = "$version"
# shellcheck disable=SC2046 # the flags are words
"$compiler" $(pkg-config --cflags sluice) "$source" -o "$output" $(pkg-config --libs sluice)
LD_LIBRARY_PATH=$(pkg-config --variable=libdir sluice) "$output" "$version"

command=$(sed -n '/^cc program\.c /,/[^\\]$/p' "$page")
test -n "$command" || { echo "FAILED: $page has no command that begins with cc program.c" && exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$source" "$folder/program.c"
# link COMPILER [FLAG]: the page's command, with that for cc.
link() {
  printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$(command -v "$1")" "${2:-}" >"$folder/cc"
  chmod +x "$folder/cc"
  (cd "$folder" && PATH=$folder:$PATH sh -c "$command") || { echo "FAILED: with $*: $command" && exit 1; }
}
link "$compiler"
"$folder/a.out" "$version"
for clang in clang clang-14; do
  # Whether this machine has the sanitizer at all.
  command -v "$clang" >/dev/null && printf 'int main(void) { return 0; }\n' | "$clang" -fsanitize=leak -x c - -o "$folder/plain" 2>/dev/null || continue
  # The sanitizer's malloc serves, and the library only answers.
  printf '#include <sluice/sluice.h>\n#include <stdio.h>\n#include <stdlib.h>\nint main(void) { free(malloc(1)); return puts(sluice_version()) < 0; }\n' >"$folder/program.c"
  link "$clang" -fsanitize=leak
  test "$(LSAN_OPTIONS=detect_leaks=0 "$folder/a.out")" = "$version"
  exit 0
done
