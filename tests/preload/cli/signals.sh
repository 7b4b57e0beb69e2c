#!/usr/bin/env bash
# `sluice run` becomes the program: signals reach it and end it as they would without the command.
. "$(dirname "$0")/testing.sh"

for signal in TERM KILL INT HUP SEGV; do
  run "$SLUICE" run -- sh -c "kill -$signal \$\$"
  expect_status $((128 + $(kill -l "$signal")))
done

# The process that was started is the program, under the same process id; a signal to it is the program's to handle.
mkfifo ready
"$SLUICE" run -- sh -c 'trap "exit 42" USR1; echo $$ >ready; while :; do sleep 0.01; done' &
child=$!
read -r pid <ready
[ "$pid" = "$child" ] || fail "the program runs as $pid, the command was started as $child"
kill -USR1 "$child"
wait "$child"
status=$?
last='trap of USR1'
expect_status 42

"$SLUICE" run -- sh -c 'echo $$ >ready; exec sleep 1000' &
child=$!
read -r pid <ready
kill -TERM "$child"
wait "$child"
status=$?
last='TERM from outside'
expect_status 143

# What the caller ignores stays ignored.
run bash -c 'trap "" TERM; exec "$SLUICE" run -- sh -c "kill -TERM \$\$; echo alive"'
expect_output alive
finish
