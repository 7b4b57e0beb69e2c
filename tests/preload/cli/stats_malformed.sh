#!/usr/bin/env bash
# `sluice stats` with files that are no dumps: one line that says what is wrong, exit status 2, no table.
. "$(dirname "$0")/testing.sh"

refuses() { # TEXT FILE
  run "$SLUICE" stats "$2"
  expect_one_line_error 2 "$1"
  run "$SLUICE" stats "$fixtures/before.json" "$2"
  expect_one_line_error 2 "$1"
}
altered() { # TEXT SED-EXPRESSION: refuses the sample with this change
  sed -E "$2" "$fixtures/before.json" >altered.json
  cmp -s altered.json "$fixtures/before.json" && fail "'$2' changes nothing"
  refuses "$1" altered.json
}

refuses 'No such file' nonexistent.json
refuses 'cannot be read' "$workspace"
: >empty.json
refuses 'is empty' empty.json
echo 'sluice 0.1.0: pid 1, a text table' >text.json
refuses 'not JSON' text.json
for bytes in 1 100 1000; do
  head -c "$bytes" "$fixtures/before.json" >short.json
  refuses 'not JSON' short.json
done
cat "$fixtures/before.json" "$fixtures/before.json" >two.json
refuses 'not JSON' two.json
head -c 4096 /dev/zero >zeros.json
refuses 'not JSON' zeros.json
head -c 1000000 /dev/zero | tr '\0' '[' >deep.json
refuses 'not JSON' deep.json
for document in '[]' 'null' '1' '"sluice-stats"'; do
  echo "$document" >other.json
  refuses 'is not an object' other.json
done
echo '{}' >other.json
refuses 'schema is missing' other.json

altered 'schema is not sluice-stats' 's/sluice-stats/other-stats/'
altered 'schema_version 2 is not supported' 's/"schema_version": 1/"schema_version": 2/'
altered 'schema_version is not a non-negative integer' 's/"schema_version": 1/"schema_version": "1"/'
altered 'live_bytes is missing' '0,/"live_bytes"/s//"renamed"/'
altered 'counting is not true or false' 's/"counting": true/"counting": 1/'
altered 'program is not a string' 's/"program": "[^"]*"/"program": 5/'
altered 'pid is not a non-negative integer' 's/"pid": [0-9]+/"pid": -1/'
altered 'pid is not a non-negative integer' 's/"pid": [0-9]+/"pid": 1.5/'
altered 'pid is not a non-negative integer' 's/"pid": [0-9]+/"pid": 18446744073709551616/'
altered 'classes is not an array' 's/"classes": \[/"classes": 7, "was": [/'
altered 'classes[0].slabs is missing' '0,/"slabs"/s//"renamed"/'
altered 'classes[0].block_size is no size class' '0,/"block_size": [0-9]+/s//"block_size": 17/'
altered 'classes[0].block_size is no size class' '0,/"block_size": [0-9]+/s//"block_size": 0/'
altered 'classes[0].block_size is no size class' '0,/"block_size": [0-9]+/s//"block_size": 18446744073709551615/'
altered 'classes[1].block_size occurs twice' 's/"block_size": [0-9]+/"block_size": 16/'
altered 'classes[0].block_size is no size class' '0,/"block_size": [0-9]+/s//"block_size": 65552/'
altered 'classes[0]. is not an object' 's/"classes": \[/"classes": [3,/'
altered 'large. is not an object' 's/"large": \{/"large": null, "was": {/'
for section in large arena threads os foreign; do
  altered "$section is missing" "s/\"$section\": /\"renamed\": /"
done
altered 'os.failed_calls is missing' 's/"failed_calls"/"renamed"/'
finish
