#!/usr/bin/env bash
# Builds libsluice.so from the same sources for musl, with gcc's specs for it, and runs a program of musl's on it; and shows
# what musl's loader says of the library that was built for glibc. Open it when a source file does not compile on Alpine, or
# the library hangs there.
#
# Usage: musl.sh SOURCES EXPORT_LIST LIBSLUICE CORE_SOURCE...; ends with status 77 where there is no musl-gcc, or no gcc.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
sources=$1 exports=$2 library_of_glibc=$3 core=("${@:4}")
skip() {
  echo "skipped: $*"
  exit 77
}
fail() {
  echo "FAILED: $*"
  exit 1
}
command -v musl-gcc >/dev/null || skip "musl-gcc is not installed"
specs=$(grep -o '/[^" ]*musl-gcc\.specs' "$(command -v musl-gcc)" | head -n 1)
compiler=$(command -v g++) || skip "g++ is not installed"
[ -f "$specs" ] || skip "musl-gcc has no specs"
headers=$(grep -o -m 1 '/[^ ]*include[^ ]*musl[^ ]*' "$specs")
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
unset LD_PRELOAD "${!SLUICE_@}"

# libstdc++'s folders of headers, as the compiler names them, and the kernel's apart from glibc's.
mapfile -t standard < <("$compiler" -x c++ -E -v /dev/null 2>&1 | sed -n 's/^ \(\/.*c++.*\)$/\1/p')
mkdir "$temporary/kernel"
for folder in linux asm-generic "$("$compiler" -print-multiarch)/asm"; do
  ln -s "/usr/include/$folder" "$temporary/kernel/"
done
flags=(-specs="$specs" -nostdinc++ -include "$here/musl_headers.h")
for folder in "${standard[@]}" "$headers" "$temporary/kernel"; do flags+=(-isystem "$folder"); done
flags+=(-std=c++20 -O1 -fPIC -Wall -Wextra -Wshadow -Werror -fno-rtti -fno-threadsafe-statics -fvisibility=hidden
  -ftls-model=initial-exec -fno-stack-protector -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-free -fno-builtin-realloc
  -DSLUICE_BUILDING=1 -DSLUICE_ARENA=1 -DSLUICE_FRAMES=1 -I "$sources/lib/src" -I "$sources/lib/include" -I "$sources/preload")

# compile FILE: an object in the temporary folder. Only new and delete are compiled with exceptions.
compile() {
  local exceptions=-fno-exceptions
  case $1 in */new_delete.cpp) exceptions=-fexceptions ;; esac
  "$compiler" "${flags[@]}" $exceptions -c "$1" -o "$temporary/$(basename "$(dirname "$1")")-$(basename "$1").o"
}
files=("${core[@]}")
for file in "$sources"/lib/src/os/*.cpp "$sources"/preload/*.cpp; do
  case $file in */macos*.cpp | */macho*.cpp) ;; *) files+=("$file") ;; esac
done
half=$((${#files[@]} / 2))
(for file in "${files[@]:0:half}"; do compile "$file"; done) &
for file in "${files[@]:half}"; do compile "$file"; done
wait $! || fail "a source file does not compile for musl"
library=$temporary/libsluice.so
musl-gcc -shared "$temporary"/*.o -o "$library" -Wl,-z,defs -Wl,-z,nodelete -Wl,-z,now -Wl,--gc-sections \
  -Wl,--version-script="$exports" || fail "the library does not link for musl"
musl-gcc -O1 -fno-builtin -Wall -Wextra -Werror -I "$sources/lib/include" "$here/musl_program.c" -o "$temporary/program" -pthread ||
  fail "the program does not compile for musl"

for variable in A= SLUICE_STATS=json:"$temporary/report" SLUICE_FRAME_CHECKS=1; do
  output=$(env LD_PRELOAD="$library" "$variable" "$temporary/program" 2>&1) || fail "$variable: $output"
  [ "$output" = "reached the end" ] || fail "$variable: printed '$output'"
done
grep -q '"program": "program"' "$temporary/report" || fail "no statistics: $(cat "$temporary/report")"
# The library of glibc is refused by musl's loader, with its own words, and not by a signal later.
status=0
output=$(env LD_PRELOAD="$library_of_glibc" "$temporary/program" 2>&1) || status=$?
[ "$status" -eq 127 ] && [[ $output == *"Error relocating"*"symbol not found"* ]] ||
  fail "with the library of glibc: status $status, $output"
echo "passed"
