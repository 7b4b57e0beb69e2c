#!/usr/bin/env bash
# A misspelt name gets the one that was meant if one is near, and a mistake with words before the program is explained.
. "$(dirname "$0")/testing.sh"

suggests() { # TEXT ARGUMENTS...
  local text=$1
  shift
  run "$SLUICE" "$@"
  expect_one_line_error 2 "; did you mean '$text'?"
}
suggests_nothing() { # TEXT ARGUMENTS...
  local text=$1
  shift
  run "$SLUICE" "$@"
  expect_one_line_error 2 "$text"
  case "$errors" in *'did you mean'*) fail "$last: nothing is near: $errors" ;; esac
}
suggests compare comapre --runs 1 -- true
suggests stats stat x.json
suggests options opt
suggests list bench lst
suggests --runs compare --run 1 -- true
suggests --warmup compare --warmpu=1 -- true
suggests --secure run --secrue true
suggests --rounds bench run pair --round 1
suggests --markdown options --markdwon
suggests mimalloc compare --with mimaloc -- true
suggests system compare --with sytem -- true
suggests PURGE_DELAY run --option purge_dely=1 -- true
suggests_nothing "no subcommand 'nope'" nope
suggests_nothing "unknown allocator 'nope'" compare --with nope -- true
suggests_nothing "unknown allocator ''" compare --with '' -- true
suggests_nothing 'unknown option --frobnicate' compare --frobnicate -- true
suggests_nothing 'unknown option --frobnicate' bench --all --frobnicate
suggests_nothing "unknown option 'nonsense'" run --option nonsense=1 -- true
suggests_nothing "bench: no subcommand 'frobnicate'" bench frobnicate
suggests_nothing "what is 'frobnicate'?" options frobnicate

# A command line in one word.
for subcommand in run compare; do
  run "$SLUICE" $subcommand 'ls -l'
  expect_one_line_error 127 'ls -l: not found; a command line is given word by word (-- ls -l)'
  run "$SLUICE" $subcommand -- 'ls -l'
  expect_one_line_error 127 "or to a shell (-- sh -c 'ls -l')"
done

# A format where only the bare option may stand.
run "$SLUICE" run --stats json -- true
expect_status 0
python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["schema"] == "sluice-stats"' "$workspace/.errors" ||
  fail "--stats json -- prints no JSON: $errors"
run "$SLUICE" run --stats json:dump.json -- true
expect_status 0
[ -s dump.json ] || fail '--stats json:FILE -- writes no file'
for words in 'json' 'json true' 'json:dump.json true'; do
  run "$SLUICE" run --stats $words
  expect_one_line_error 127 'not found; a format stands behind =, as in --stats=json'
done
run "$SLUICE" run --stats jsno -- true
expect_one_line_error 127 'run: jsno: not found; it stands before -- and is taken for the program'
run "$SLUICE" compare 7 -- true
expect_one_line_error 127 'compare: 7: not found; it stands before -- and is taken for the program'
run "$SLUICE" run sh -c 'echo "$2"' sh -- behind
expect_output behind
finish
