#!/usr/bin/env bash
# `sluice profile -- PROGRAM`: the program runs as ever and ends as ever, the report tells of it, and nothing is left behind.
# A library of the test stands for libsluice.so.
. "$(dirname "$0")/testing.sh"
command -v python3 >/dev/null || skip 'no python3'
"$CC" -shared -fPIC -o libfake.so "$fixtures/profile_preload.c" || fail 'the library of the test'
python3 -B "$fixtures/profile_writer.py" "$workspace/demo.pb" || fail 'the profile of the test'
export FAKE_PROFILE=$workspace/demo.pb FAKE_NOTE=$workspace/note TMPDIR=$workspace/tmp
mkdir "$TMPDIR"
profile() { run "$SLUICE" profile --lib "$workspace/libfake.so" "$@"; }
expect_clean() { [ -z "$(ls -A "$TMPDIR")" ] || fail "$last: left behind: $(ls -A "$TMPDIR")"; }

profile -- cat <<<'from standard input'
expect_status 0
expect_output 'from standard input'  # what the program prints, and nothing of ours
expect_in errors 'heap profile of demo'
expect_in errors 'Table::add'
[[ $(<note) == "$TMPDIR"/sluice-profile.*/profile.*' default' ]] || fail "the library was told: $(<note)"
expect_clean

profile --rate 1 -- bash -c 'exit 7'
expect_status 7
expect_in errors 'heap profile of demo'
[[ $(<note) == *' 1' ]] || fail "the rate is $(<note)"

# Other reports, and the text only if it is asked for.
profile --html page.html --pprof out.pb.gz --collapsed stacks.txt -- true
expect_status 0
[ -z "$errors" ] || fail "$last: prints: $errors"
[ -s page.html ] && [ -s out.pb.gz ] && [ -s stacks.txt ] || fail 'a report is missing'
run "$SLUICE" profile out.pb.gz
expect_in output 'Table::add'
profile --html page.html --text -- true
expect_in errors 'Table::add'

# A program that a signal ends: it ends this command, too.
profile -- sh -c 'kill -KILL $$'
[ "$status" -eq 137 ] || fail "$last: $status"
expect_in errors 'the program wrote no profile: it was ended by signal 9'
expect_clean
profile -- sh -c 'kill -TERM $$'
[ "$status" -eq 143 ] || fail "$last: $status"

# Without a profile the program's own exit status counts, if it tells of a failure.
ln -s "$(type -P true)" silent_true
ln -s "$(type -P false)" silent_false
profile -- ./silent_true
expect_one_line_error 1 'the program wrote no profile'
profile -- ./silent_false
expect_status 1
expect_in errors 'the program wrote no profile'

# Several processes.
python3 -B - "$fixtures" <<'END_OF_SCRIPT'
import os, sys
sys.path.insert(0, sys.argv[1])
import profile_writer
for name in ("cat", "bash"):
    made = profile_writer.Profile(comments=["sluice.program=/usr/bin/" + name, "sluice.pid=1"])
    made.sample([[("work_of_" + name, "/src/x.c", 1)]], profile_writer.values(10, 1000)).write(os.environ["FAKE_PROFILE"] + "." + name)
END_OF_SCRIPT
script='cat /dev/null; cat /dev/null; exit 3'
profile -- bash -c "$script"
expect_status 3
expect_in errors '2 other processes allocated, too: /usr/bin/cat (pid '
expect_in errors 'heap profile of /usr/bin/bash'
expect_in errors 'work_of_bash'
case "$errors" in *work_of_cat*) fail "$last: reports on another process: $errors" ;; esac
profile --program cat -- bash -c "$script"
expect_in errors 'alive at end  19.5 KiB in 20 blocks'
expect_in errors '1 other process allocated, too: /usr/bin/bash'
profile --all -- bash -c "$script"
expect_in errors 'alive at end  29.3 KiB in 30 blocks'
case "$errors" in *'other process'*) fail "$last: leaves one out: $errors" ;; esac
profile --program nosuch -- bash -c 'cat /dev/null'
expect_status 1
expect_in errors 'no process that was asked for wrote a profile'

# A damaged profile is told of, and is not that of the program.
head -c 100 demo.pb >demo.pb.cat
profile -- bash -c 'cat /dev/null; :'
expect_status 0
expect_in errors 'is no profile, or is damaged'
expect_in errors 'work_of_bash'

# SIGTERM for the command is for the program, and the report is made all the same.
"$SLUICE" profile --lib "$workspace/libfake.so" -- bash -c 'trap "exit 5" TERM; echo $$ >pid; while :; do sleep 0.02; done' 2>errors &
command=$!
for ((i = 0; i < 1000; ++i)); do
  [ ! -s pid ] || break
  sleep 0.02
done
kill -TERM "$command"
wait "$command"
status=$? last='SIGTERM' errors=$(<errors) output=
expect_status 5
expect_in errors 'work_of_bash'
expect_clean

# Nothing runs whose report could not be written.
profile --html nosuch/page.html -- touch ran
expect_one_line_error 2 'nosuch/page.html cannot be written'
[ ! -e ran ] || fail 'the program ran'
profile -o nosuch=1 -- touch ran
expect_one_line_error 2 "unknown option 'nosuch'"
[ ! -e ran ] || fail 'the program ran'
echo 'no program' >plain && chmod +x plain
profile -- ./plain
expect_status 127
finish
