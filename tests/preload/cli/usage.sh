#!/usr/bin/env bash
# Help, versions, and arguments that make no sense: one line, exit status 2.
. "$(dirname "$0")/testing.sh"

for arguments in --help -h 'run --help' 'compare --help' 'bench --help' 'bench run --help' 'profile --help' 'options --help' 'docs --help' 'stats --help' 'stats -h'; do
  run "$SLUICE" $arguments
  expect_status 0
  expect_in output Usage:
  for code in 0 1 2 125 126 127 128; do expect_in output "  $code "; done
done
# What each is called with, and what it takes if nothing is said.
words() { output=$(tr -s ' \n' ' ' <<<"$output"); }
run "$SLUICE" bench run --help
expect_in output 'Usage: sluice bench run SCENARIO... [OPTIONS]'
expect_in output '--rounds N '
expect_in output '(default: 5)'
expect_in output '--quiesce S '
case "$output" in *'  --all '*) fail "$last: --all, which stands for scenarios: $output" ;; esac
run "$SLUICE" bench list --help
expect_in output 'Usage: sluice bench list'
run "$SLUICE" bench --help
words
expect_in output '0: none (default: 10)'
run "$SLUICE" profile --help
expect_in output 'Usage: sluice profile [OPTIONS] -- PROGRAM [ARGUMENTS...]'
words
expect_in output 'freed soon (short-lived) (default: inuse; peak where little is alive at the end)'
expect_in output 'every allocation (default: 512K)'
run "$SLUICE" compare --help
words
expect_in output 'Runs before the measured ones (default: 1)'
expect_in output 'after this many seconds (default: 300)'
case "$output" in *' in ['* | *:INT*) fail "$last: tells what a check has to say: $output" ;; esac

for arguments in --version 'run --version' 'options --version' 'stats --version'; do
  run "$SLUICE" $arguments
  expect_status 0
  [[ $output =~ ^sluice\ [0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "$last: printed '$output'"
done

refuses() {
  local text=$1
  shift
  run "$SLUICE" "$@"
  expect_one_line_error 2 "$text"
}
refuses subcommand
refuses nonsense nonsense
refuses 'which program' run
refuses 'which program' run --
refuses 'which program' run --stats
refuses --nonsense run --nonsense -- true
refuses --nonsense run --nonsense true
refuses --lib run --lib
refuses NAME=VALUE run --option -- true
refuses NAME=VALUE run --option cache -- true
refuses "did you mean 'PURGE_DELAY'?" run --option purge_dely=1 -- true
refuses "unknown option 'zzzzzzzzzz' (" run --option zzzzzzzzzz=1 -- true
refuses "unknown option ''" run --option =1 -- true
refuses 'STATS' run --stats=xml -- true
refuses 'STATS' run --stats=json: -- true
refuses 'bad value' run --option cache=2M -- true
refuses 'bad value' run --option cache= -- true
refuses 'bad value' run --option cache=-1 -- true
refuses 'bad value' run --option cache=1X -- true
refuses 'bad value' run --option reserve=18446744073709551616 -- true
refuses 'bad value' run --option reserve=99999999999T -- true
refuses 'bad value' run --option reserve=1K -- true
refuses 'bad value' run --option purge_delay=1K -- true
refuses 'bad value' run --option purge_delay=1.5 -- true
refuses 'bad value' run --option huge_pages=maybe -- true
refuses 'bad value' run --option stats_signal=NOSUCH -- true
refuses 'bad value' run --option stats_signal=9 -- true
refuses $'?ugly' run --option $'cache=\nugly' -- true
refuses excludes options --json --man
refuses nonsense options nonsense
refuses nonsense docs nonsense
refuses FILE stats
refuses FILE stats a b c
refuses 'standard input' stats - -

if [ -w /dev/full ]; then
  for arguments in options 'options --json' 'options --man' --help --version "stats $fixtures/before.json" \
    "stats $fixtures/before.json $fixtures/after.json"; do
    "$SLUICE" $arguments >/dev/full 2>errors
    status=$?
    last="sluice $arguments to a full disk"
    errors=$(<errors)
    expect_status 1
    expect_in errors 'No space left on device'
  done
fi
"$SLUICE" options >&- 2>/dev/null
status=$?
last='options to a closed standard output'
expect_status 1
finish
