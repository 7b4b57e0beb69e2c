#!/usr/bin/env bash
# JSON files that are damaged at random: a reader takes them, or names the file in one line and exits with 2.
. "$(dirname "$0")/testing.sh"
python3 "$fixtures/damaged_json.py" "$SLUICE" "$fixtures" || fail 'see above'

# A number that no double holds.
sed 's/"pid": [0-9]*/"pid": 1e400/' "$fixtures/before.json" >huge.json
run "$SLUICE" stats huge.json
expect_one_line_error 2 'huge.json: holds a number that is too large'
run "$SLUICE" stats "$fixtures/before.json" - <huge.json
expect_one_line_error 2 'standard input: holds a number that is too large'
for report in compare bench; do
  python3 "$fixtures/damaged_json.py" --write "$report" good.json
  run "$SLUICE" compare --diff good.json good.json
  expect_status 0
  sed 's/"samples": \[[^,]*/"samples": [1e400/' good.json >huge.json
  run "$SLUICE" compare --diff good.json huge.json
  expect_one_line_error 2 'huge.json: '
  sed 's/"partial": false/"partial": 3/' good.json >odd.json
  run "$SLUICE" compare --diff good.json odd.json
  expect_one_line_error 2 'odd.json: is damaged: type must be boolean, but is number'
  run "$SLUICE" compare --diff odd.json good.json
  expect_one_line_error 2 'odd.json: is damaged'
done
finish
