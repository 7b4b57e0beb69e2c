#!/usr/bin/env bash
# `sluice bench` with scenarios that crash, hang, lie or leave something behind; descriptions of programs that are wrong;
# Ctrl-C and full disks. The scenarios here are scripts, in an installation made for the test.
. "$(dirname "$0")/testing.sh"
export TMPDIR=$workspace/temporary
root=$workspace/root
scenarios=$root/lib/sluice/scenarios
mkdir -p "$TMPDIR" "$root/bin" "$scenarios/programs"
cp "$SLUICE" "$root/bin/sluice"
libraries=$(dirname "$(dirname "$SLUICE")")/lib
cp "$libraries/libsluice.so" "$root/lib/"
cp "$libraries"/sluice/* "$root/lib/sluice/" 2>/dev/null
sluice=$root/bin/sluice
report='{"scenario":"x","ops":10,"cases":[{"name":"CASE","ops":10,"ns_per_op":2.5}],"peak_rss_kib":1000}'
# scenario NAME TEXT: a program of that name.
scenario() {
  printf '#!/bin/sh\n%s\n' "$2" >"$scenarios/$1"
  chmod +x "$scenarios/$1"
}
scenario pair "echo '${report/CASE/pair}'"
few='--with system,sluice --rounds 2 --quiesce 0 --no-latency'

run "$sluice" bench run pair $few
expect_status 0
expect_in output '2.50 (1.00)'

# What is ahead is said before it starts: rests, too.
run timeout 60 "$sluice" bench run pair --with system,sluice --rounds 5 --quiesce 10 </dev/null
expect_status 0
expect_in errors '1 scenario under 2 allocators: 2 runs in which memory is read, each with 10 s of rest at the end (--quiesce); 10 timed runs; 2 runs in which each call is timed. About 34 s if a run takes 1 s, 20 s of it rest.'

# An error under one allocator leaves the figures of the others.
scenario lifo "case \$LD_PRELOAD in *libsluice.so*) echo ouch >&2; kill -SEGV \$\$ ;; esac; echo '${report/CASE/lifo}'"
run "$sluice" bench run lifo pair $few --json l.json
expect_status 1
expect_in errors 'lifo under sluice: ended by signal 11 (Segmentation fault): ouch'
expect_in output 'failed'
python3 -c 'import json; s = json.load(open("l.json"))["scenarios"]
assert "signal 11" in s[0]["failures"]["sluice"] and s[1]["failures"] == {}, s
assert list(s[0]["cases"][0]["allocators"]) == ["system"], s' || fail 'the JSON file does not tell of the crash'
scenario lifo 'echo complaint >&2; exit 3'
run "$sluice" bench run lifo $few
expect_status 1
expect_in errors 'lifo under system: exit status 3: complaint'
scenario lifo 'echo nonsense'
run "$sluice" bench run lifo $few
expect_status 1
expect_in errors 'lifo under system: its output is not a report'
scenario lifo "sleep 1000 & sleep 1000"
run "$sluice" bench run lifo $few --timeout 0.3
expect_status 1
expect_in errors 'lifo under system: stopped, since it took too long'
pgrep -f 'sleep 1000' >/dev/null && pgrep -f -a 'sleep 1000' | grep -q "^$$ " && fail 'a hanging scenario was left running'
# Latencies that cannot be read cost no other scenario its figures.
scenario lifo "[ -z \"\$LIBSLUICE_LATENCY\" ] || echo junk >>\"\$LIBSLUICE_LATENCY\"; echo '${report/CASE/lifo}'"
run "$sluice" bench run lifo pair --with system --rounds 1 --quiesce 0
expect_status 1
expect_in errors 'is damaged in line 1'
expect_in output '2.50'
rm "$scenarios/lifo"
run "$sluice" bench run lifo $few
expect_one_line_error 2 'lifo cannot be run: it was left out when this was built'

# Ctrl-C: what is there is kept, and said to be partial.
scenario fifo "echo '${report/CASE/fifo}'; [ \$(wc -l <$workspace/count) -lt 5 ] || sleep 100; echo >>$workspace/count"
: >count
setsid "$sluice" bench run fifo --with system --rounds 50 --quiesce 0 --no-latency --json p.json >p.txt 2>&1 &
command=$!
for _ in $(seq 600); do
  [ "$(wc -l <count)" -ge 5 ] && break
  sleep 0.05
done
kill -INT "$command"
wait "$command"
[ $? -eq 130 ] || fail 'an interrupted comparison ends with another status than 130'
grep -q 'Partial: it was interrupted' p.txt || fail "it is not said to be partial: $(cat p.txt)"
python3 -c 'import json; d = json.load(open("p.json"))
assert d["partial"] and len(d["scenarios"][0]["cases"][0]["allocators"]["system"]["samples"]) == 4, d' ||
  fail 'the samples before the interruption are lost'

# Ctrl-C in the first run: there is nothing to keep.
scenario fifo "echo >>$workspace/count; sleep 100"
: >count
setsid "$sluice" bench run fifo --with system --rounds 50 --quiesce 0 --no-latency --html q.html >q.txt 2>q.errors &
command=$!
for _ in $(seq 600); do
  [ -s count ] && break
  sleep 0.05
done
kill -INT "$command"
wait "$command"
[ $? -eq 130 ] || fail 'a comparison that is interrupted at once ends with another status than 130'
[ -s q.txt ] && fail "tables of nothing: $(cat q.txt)"
[ "$(tail -n +2 q.errors)" = 'sluice: bench: interrupted before a run had ended; no report is written' ] || fail "$(cat q.errors)"
ls | grep '^q\.html' && fail 'a page of nothing'
rm "$scenarios/fifo"

# A full disk is an error, after the tables.
run "$sluice" bench run pair $few --json /dev/full
expect_status 1
expect_in output 'ns per operation'
expect_in errors 'No space left'

run "$sluice" compare --diff "$TMPDIR" "$TMPDIR"
expect_one_line_error 2 'cannot be read'

# program NAME JSON: a description of a real program.
program() { printf '%s\n' "$2" >"$scenarios/programs/$1.json"; }
program sorter '{"summary": "sort", "needs": ["sort", "seq"], "prepare": "seq 1000 -1 1 >${work}/numbers", "command": ["sort", "-n", "${work}/numbers"],
  "operations": 1000, "unit": "line"}'
run "$sluice" bench run sorter $few
expect_status 0
expect_in output 'real programs, time per operation'
program server '{"summary": "serves", "needs": ["sh"], "command": ["sh", "-c", "trap \"exit 0\" TERM; echo up >${work}/up; while :; do sleep 0.01; done"],
  "before": "rm -f ${work}/up", "ready": "test -s ${work}/up", "load": "echo reached 2000 per second", "rate": "reached ([0-9]+)", "unit": "question"}'
run "$sluice" bench run server --with system,sluice --rounds 1 --quiesce 0 --no-latency
expect_status 0
expect_in output '500 µs ('
program resting '{"summary": "serves", "needs": ["sh"], "command": ["sh", "-c", "trap \"exit 0\" TERM; echo up >${work}/up; while :; do sleep 0.01; done"],
  "before": "rm -f ${work}/up", "ready": "test -s ${work}/up", "load": "sleep 0.5; echo reached 2000 per second", "rate": "reached ([0-9]+)", "unit": "question"}'
run "$sluice" bench run resting --with system,sluice --rounds 1 --quiesce 0 --no-latency --json resting.json
expect_status 0
expect_in output 'real programs, average memory of all processes, MiB'
python3 - resting.json << 'END' || fail 'the average memory of a program that rests is wrong'
import json, sys
(scenario,) = json.load(open(sys.argv[1]))["scenarios"]
for memory in scenario["memory"].values():
    assert 0 < memory["average_kib"]["median"] <= memory["peak_kib"]["median"], memory
    assert memory["average_kib"]["samples"] == [memory["average_kib"]["median"]], memory
END
program moody '{"summary": "differs", "needs": ["sh"], "command": ["sh", "-c", "case $LD_PRELOAD in *libsluice.so*) echo that ;; *) echo this ;; esac"],
  "operations": 1, "unit": "word"}'
run "$sluice" bench run moody $few
expect_status 1
expect_in errors 'moody under sluice: printed something else than under system'
program unprepared '{"summary": "x", "needs": [], "prepare": "echo no room >&2; exit 9", "command": ["true"], "operations": 1, "unit": "x"}'
run "$sluice" bench run unprepared $few
expect_status 1
expect_in errors 'unprepared under system: could not be prepared: exit status 9: no room'
program slow '{"summary": "x", "needs": [], "prepare": "sleep 100", "command": ["true"], "operations": 1, "unit": "x"}'
run "$sluice" bench run slow $few --timeout 0.2
expect_status 1
expect_in errors 'slow under system: stopped, since it took too long'
expect_in errors 'slow under sluice: could not be prepared'
rm "$scenarios/programs/slow.json"
program absent '{"summary": "x", "needs": ["no-such-program"], "packages": ["some-package"], "command": ["no-such-program"], "operations": 1, "unit": "x"}'
run "$sluice" bench run absent $few
expect_one_line_error 2 'absent cannot be run: no-such-program is not installed (Debian: some-package)'
run "$sluice" bench run absent --seed 1 $few
expect_status 2
run "$sluice" bench list
expect_in output 'no-such-program is not installed'
rm "$scenarios/programs/"{moody,unprepared}.json
run "$sluice" bench --all $few
expect_status 0
expect_in errors 'absent is left out: no-such-program is not installed'
expect_in output 'sorter'

program unread '{"summary": "x", "needs": [], "command": ["cat"], "input": "${work}/absent", "operations": 1, "unit": "x"}'
run "$sluice" bench run unread $few
expect_status 1
expect_in errors 'absent is not there'
rm "$scenarios/programs/unread.json"

wrong() {
  program broken "$2"
  run "$sluice" bench run sorter $few
  expect_one_line_error 2 "broken.json: $1"
  rm "$scenarios/programs/broken.json"
}
wrong 'it is no JSON object' 'nonsense'
wrong 'it has no "summary"' '{}'
wrong 'nobody knows its "colour"' '{"summary": "x", "needs": [], "command": ["true"], "operations": 1, "unit": "x", "colour": 1}'
wrong 'its "operations" is of the wrong kind' '{"summary": "x", "needs": [], "command": ["true"], "operations": "many", "unit": "x"}'
wrong 'it needs either "operations"' '{"summary": "x", "needs": [], "command": ["true"], "unit": "x"}'
wrong 'its "command" is empty' '{"summary": "x", "needs": [], "command": [], "operations": 1, "unit": "x"}'
wrong '"ready", "stop" and "rate" belong to a service' '{"summary": "x", "needs": [], "command": ["true"], "operations": 1, "ready": "true", "unit": "x"}'
wrong 'its "stop" is no signal' '{"summary": "x", "needs": [], "command": ["true"], "load": "true", "stop": "NONE", "operations": 1, "unit": "x"}'
wrong 'its "rate" has no group' '{"summary": "x", "needs": [], "command": ["true"], "load": "true", "rate": "x", "unit": "x"}'

rm -r "$scenarios"
run "$sluice" bench list
expect_one_line_error 125 'the scenarios are not there'
[ -z "$(ls "$TMPDIR")" ] || fail "a temporary folder was left: $(ls "$TMPDIR")"
finish
