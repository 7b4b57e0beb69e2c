#!/usr/bin/env bash
# What `sluice run` passes through: exit status, arguments, standard streams.
. "$(dirname "$0")/testing.sh"

for code in 0 1 2 3 77 124 125 126 127 128 255; do
  run "$SLUICE" run -- sh -c "exit $code"
  expect_status "$code"
done

show='for argument; do printf "<%s>" "$argument"; done'
run "$SLUICE" run -- sh -c "$show" name 'a b' '' '*' --stats -- --version --lib
expect_output '<a b><><*><--stats><--><--version><--lib>'
run "$SLUICE" run sh -c "$show" name -- --help -o x=y
expect_output '<--><--help><-o><x=y>'
run "$SLUICE" run --stats=text:ignored sh -c "$show" name --
expect_output '<-->'
run "$SLUICE" run -- sh -c 'echo "$0"'
expect_output sh

run "$SLUICE" run -- cat <<<'through standard input'
expect_output 'through standard input'
run "$SLUICE" run -- sh -c 'echo to standard error >&2'
expect_in errors 'to standard error'
finish
