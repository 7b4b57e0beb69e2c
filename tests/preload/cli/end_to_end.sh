#!/usr/bin/env bash
# The command with the library: a program runs, its dump is read back, and the table is what the library prints itself.
. "$(dirname "$0")/testing.sh"

mkdir folder
run "$SLUICE" run --stats=json:dump.%p.json -- ls folder
expect_status 0
set -- dump.*.json
dump=$1
[ $# -eq 1 ] && [[ $dump =~ ^dump\.([0-9]+)\.json$ ]] || fail "not one dump: $*"
pid=${BASH_REMATCH[1]}
run "$SLUICE" stats "$dump"
expect_status 0
expect_in output 'totals'
[[ $output =~ ^sluice\ [0-9]+\.[0-9]+\.[0-9]+:\ pid\ $pid,\ ls$'\n' ]] || fail "unexpected first line: $output"
[[ $output == *"counts need"* ]] && fail 'the counts are missing'

# Both formats describe the same work of the same program.
run "$SLUICE" run --stats=text -- true
expect_status 0
expect_in errors 'sluice '
as_text=$(grep -E '^  (allocated|freed|live|requested) ' <<<"$errors")
run "$SLUICE" run --stats=json -- true
expect_status 0
printf '%s\n' "$errors" >true.json
run "$SLUICE" stats true.json
expect_status 0
[ "$(grep -E '^  (allocated|freed|live|requested) ' <<<"$output")" = "$as_text" ] ||
  fail "the table of the dump differs from the library's own: $as_text; $output"

# Totals add up.
if command -v python3 >/dev/null; then
  run python3 - "$dump" <<'PYTHON'
import json, sys
dump = json.load(open(sys.argv[1]))
parts = dump["classes"] + [dump["large"]]
for part in parts + [dump]:
    assert part["allocated_bytes"] - part["freed_bytes"] == part["live_bytes"], part
for name in ("mallocs", "frees", "allocated_bytes", "freed_bytes", "live_bytes", "requested_bytes"):
    assert dump[name] == sum(part[name] for part in parts), name
assert dump["mallocs"] > 0
PYTHON
  expect_status 0
fi

run "$SLUICE" run --stats=json:/nonexistent/folder/dump.json -- sh -c 'exit 7'
expect_status 7
finish
