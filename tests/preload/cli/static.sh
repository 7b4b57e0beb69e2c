#!/usr/bin/env bash
# Statically linked programs, into which nothing can be preloaded: one line, exit status 125, and they are not run.
. "$(dirname "$0")/testing.sh"

printf '#include <stdio.h>\nint main(void) { fputs("was run\\n", stdout); return 0; }\n' >program.c
built=0
for form in static static-pie; do
  "${CC:-cc}" -"$form" program.c -o "$form" 2>/dev/null && built=$((built + 1)) || continue
  run "$SLUICE" run -- "./$form"
  expect_one_line_error 125 "./$form is statically linked: the preload cannot work"
  run "$SLUICE" run --force -- "./$form"
  expect_status 0
  expect_output 'was run'

  printf '#!%s/%s\n' "$workspace" "$form" >"script-$form"
  chmod +x "script-$form"
  run "$SLUICE" run -- "./script-$form"
  expect_one_line_error 125 'is statically linked: the preload cannot work'
done
[ "$built" -gt 0 ] || skip 'no static C library'

# The dynamic loader is no static program, though it names no loader of its own.
loader=$(readlink -f "$(ldd /bin/sh | grep -o '/[^ ]*ld-[^ ]*' | head -n 1)")
if [ -x "$loader" ]; then
  run "$SLUICE" run -- "$loader" /bin/sh -c 'echo by the loader'
  expect_output 'by the loader'
fi
finish
