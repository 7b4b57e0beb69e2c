#!/usr/bin/env bash
# `sluice compare` when something is wrong: arguments, programs that hang or leave processes, interruption, a full disk.
. "$(dirname "$0")/testing.sh"

run "$SLUICE" compare
expect_one_line_error 2 'compare: which program?'
run "$SLUICE" compare --nonsense -- true
expect_one_line_error 2 'compare: unknown option --nonsense'
run "$SLUICE" compare --with slice -- true
expect_one_line_error 2 "unknown allocator 'slice'; did you mean 'sluice'?"
run "$SLUICE" compare --with system,x=/no/such.so -- true
expect_one_line_error 2 'no such file'
run "$SLUICE" compare --with system,system -- true
expect_one_line_error 2 "names 'system' twice"
run "$SLUICE" compare --baseline sluce --with system,sluice -- true
expect_one_line_error 2 "unknown allocator for --baseline 'sluce'; did you mean 'sluice'?"
run "$SLUICE" compare --runs 0 -- true
expect_one_line_error 2 '--runs'
run "$SLUICE" compare --timeout 0 -- true
expect_one_line_error 2 '--timeout'
run "$SLUICE" compare --input no-file -- true
expect_one_line_error 2 '--input no-file: no file that can be read'
run "$SLUICE" compare --json no-folder/c.json -- true
expect_one_line_error 2 'no-folder/c.json cannot be written'
run "$SLUICE" compare --ready true -- true
expect_one_line_error 2 'compare: --ready needs --load'
run "$SLUICE" compare --load true --stop NONE -- true
expect_one_line_error 2 'compare: --stop NONE: no such signal'
run "$SLUICE" compare --load true --metric 'took [0-9]+' -- true
expect_one_line_error 2 'it has no group'
run "$SLUICE" compare --load true --metric 'took ([0-9+' -- true
expect_one_line_error 2 '--metric'
run "$SLUICE" compare -- no-such-program
expect_one_line_error 127 'no-such-program'
touch plain-file
run "$SLUICE" compare -- ./plain-file
expect_one_line_error 126 'plain-file'

# A program that hangs is stopped with all it has started, also what has left its process group.
run "$SLUICE" compare --runs 1 --warmup 0 --timeout 0.3 --with system -- sh -c 'setsid sleep 4711 & sleep 4711'
expect_status 1
expect_in output 'Error: system: stopped, since it took too long (--timeout).'
pgrep -f 'sleep 4711' && fail 'processes of a run that took too long are still there'
# What outlives a program that ends is ended, and told of.
run "$SLUICE" compare --runs 1 --warmup 0 --with system -- sh -c 'setsid sleep 4712 & :'
expect_status 0
expect_in output 'Note: system: after 1 of its runs processes were left, and were ended.'
pgrep -f 'sleep 4712' && fail 'processes that were left are still there'

# Interrupted: the runs so far are reported, and nothing stays behind.
cat >interrupts <<'END'
if test -e second; then kill -INT "$(cat pid)"; sleep 4713; fi
touch first
if test -e first-done; then touch second; fi
touch first-done
END
(echo $BASHPID >pid && exec "$SLUICE" compare --runs 9 --warmup 0 --with system --json partial.json -- sh interrupts) >out 2>&1
code=$?
[ $code -eq 130 ] || fail "interrupted: exit status $code: $(cat out)"
grep -q 'Note: interrupted: only 3 of 9 rounds were begun.' out || fail "interrupted: $(cat out)"
grep -q '"partial": true' partial.json || fail 'the JSON file does not say that it is partial'
pgrep -f 'sleep 4713' && fail 'processes of the interrupted run are still there'

# A full disk: one line, and a report that was there before stays.
if [ -w /dev/full ]; then
  run "$SLUICE" compare --runs 1 --warmup 0 --with system --json /dev/full -- true
  expect_status 1
  expect_in errors 'sluice: /dev/full cannot be written: No space left on device'
  "$SLUICE" compare --runs 1 --warmup 0 --with system -- true >/dev/full 2>errors && fail 'no error on a full standard output'
  grep -q 'cannot write to standard output' errors || fail "full standard output: $(cat errors)"
fi
echo before >kept.json
run "$SLUICE" compare --runs 1 --warmup 0 --with system --json kept.json -- no-such-program
expect_status 127
[ "$(cat kept.json)" = before ] || fail 'a report was overwritten by a comparison that did not take place'
[ "$(ls -A | grep -c 'kept.json.')" -eq 0 ] || fail 'a half-written report was left'
finish
