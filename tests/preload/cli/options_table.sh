#!/usr/bin/env bash
# `sluice options` lists every option of the table in every format, and the manual page does as well.
. "$(dirname "$0")/testing.sh"

names=$(sed -n 's/^SLUICE_OPTION([a-z_]*, *\([A-Z_]*\),.*/\1/p' "$OPTIONS_TABLE")
[ "$(wc -w <<<"$names")" -eq "$(grep -c '^SLUICE_OPTION' "$OPTIONS_TABLE")" ] || fail 'cannot read the table'
[ -n "$names" ] || fail 'the table is empty'

for format in '' --json --markdown --man; do
  run "$SLUICE" options $format
  expect_status 0
  for name in $names; do
    grep -Eq "SLUICE_$name([^A-Z_]|\$)" <<<"$output" || fail "$last: lacks SLUICE_$name"
  done
done
while IFS= read -r line; do
  [ "${#line}" -le 100 ] || fail "longer than 100 columns: $line"
done < <("$SLUICE" options)

if command -v python3 >/dev/null; then
  run python3 -c 'import json, sys; print(*[row["name"][7:] for row in json.load(sys.stdin)])' < <("$SLUICE" options --json)
  expect_status 0
  expect_output "$(echo $names)"
fi

# Each default, where there is one, is a value that --option takes.
while read -r variable type default _; do
  [ "$default" = none ] && continue
  run "$SLUICE" run --option "$variable=$default" -- true
  expect_status 0
done < <("$SLUICE" options | grep '^SLUICE_')

[ -f "$MANUAL" ] || fail "no manual page at $MANUAL"
for name in $names; do
  grep -q "SLUICE_$name\$" "$MANUAL" || fail "the manual page lacks SLUICE_$name"
done
grep -q '@' "$MANUAL" && fail 'the manual page has a placeholder left'
if command -v groff >/dev/null; then
  warnings=$(groff -man -Tascii -ww "$MANUAL" 2>&1 >/dev/null)
  [ -z "$warnings" ] || fail "groff: $warnings"
fi
finish
