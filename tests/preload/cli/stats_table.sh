#!/usr/bin/env bash
# `sluice stats`: a dump as the table, two dumps as their difference. The expected tables lie beside the dumps.
. "$(dirname "$0")/testing.sh"

same() {
  printf '%s\n' "$output" | diff -u "$fixtures/$1" - || fail "$last: not as in $1"
}
run "$SLUICE" stats "$fixtures/before.json"
expect_status 0
same before.txt
run "$SLUICE" stats - <"$fixtures/before.json"
expect_status 0
same before.txt

cd "$fixtures" || exit 1
run "$SLUICE" stats before.json after.json
expect_status 0
same difference.txt
run "$SLUICE" stats - after.json <before.json
expect_status 0
[ "${output/standard input/before.json}" = "$(<difference.txt)" ] || fail "$last: differs from difference.txt"
run "$SLUICE" stats before.json - <after.json
expect_status 0
[ "${output/standard input/after.json}" = "$(<difference.txt)" ] || fail "$last: differs from difference.txt"

# A dump that differs from itself in nothing.
run "$SLUICE" stats before.json before.json
expect_status 0
[[ $output =~ [+-][0-9] ]] && fail "$last: shows a difference: $output"

# Fields that a later library adds are no reason to refuse a dump.
cd "$workspace" || exit 1
sed 's/"schema_version": 1,/"schema_version": 1, "added_later": {"x": [1, -2.5, null]},/' "$fixtures/before.json" >newer.json
run "$SLUICE" stats newer.json
expect_status 0
same before.txt

# Nor are those that an earlier library did not have yet.
sed '/"resident": /d' "$fixtures/before.json" >older.json
cmp -s older.json "$fixtures/before.json" && fail "older.json is no older"
sed '/^resident memory/,/^$/d' "$fixtures/before.txt" >older.txt
run "$SLUICE" stats older.json
expect_status 0
printf '%s\n' "$output" | diff -u older.txt - || fail "$last: not as in older.txt"
finish
