#!/usr/bin/env bash
# A dynamic program on another C library than ours: one line, exit status 125.
. "$(dirname "$0")/testing.sh"

command -v musl-gcc >/dev/null || skip 'no musl-gcc'
echo 'int main(void) { return 0; }' >program.c
musl-gcc program.c -o program || skip 'musl-gcc does not link'
run "$SLUICE" run -- ./program
expect_one_line_error 125 'runs on another C library (/lib/ld-musl-'
finish
