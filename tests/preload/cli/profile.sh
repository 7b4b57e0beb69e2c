#!/usr/bin/env bash
# `sluice profile FILE`: the text, stacks for flamegraph.pl, differences, and what it refuses.
. "$(dirname "$0")/testing.sh"
command -v python3 >/dev/null || skip 'no python3'
python3 -B "$fixtures/profile_writer.py" demo.pb || fail 'the profile of the test'
python3 -B "$fixtures/profile_writer.py" demo.pb.gz || fail 'the compressed profile of the test'
python3 -B - "$fixtures" <<'END_OF_SCRIPT'
import sys
sys.path.insert(0, sys.argv[1])
import profile_writer
profile_writer.Profile().sample([[("f", "/src/f.c", 3)]], profile_writer.values(100000, 100, inuse=0)).write("freed.pb")
END_OF_SCRIPT

run "$SLUICE" profile demo.pb
expect_status 0
[ -z "$errors" ] || fail "$last: complains: $errors"
text=$output
for words in 'heap profile of demo, pid 4711' 'ran           2.50 s' 'allocated     1.03 GiB in 1,101,010 blocks' \
  'peak          193 MiB in 121,010 blocks after 1.50 s' 'alive at end  96.4 MiB in 11,010 blocks' \
  'short-lived   89.0 % of the blocks' 'samples       1,234; one for each 512 KiB' 'cut off       3 stacks' '±13 %' \
  'top 3 of 3 sites by alive at the end' \
  '  99.0 %   14 %  95.4 MiB   1,000  95.4 MiB   95.4 MiB        0.0 %  Table::add  table.cpp:31' \
  'via std::vector<>::_M_realloc_insert<>, operator new' 'cache_put  cache.cpp:77'; do
  expect_in output "$words"
done
[ "$(head -c 8192 .output | tr -d -c '\033' | wc -c)" -eq 0 ] || fail 'a function writes to the terminal'
run "$SLUICE" profile demo.pb.gz
expect_output "$text"
run "$SLUICE" profile - <demo.pb.gz
expect_output "$text"

# Other orders, fewer sites. What was alive at the peak says more where next to nothing is alive at the end.
run "$SLUICE" profile freed.pb
expect_in output 'top 1 of 1 sites by alive at the peak'
expect_in output '±42 % for all that is alive at the peak'
run "$SLUICE" profile freed.pb --sort inuse
expect_in output 'no site has anything that is alive at the end'
run "$SLUICE" profile demo.pb --sort alloc --top 1
expect_in output 'top 1 of 4 sites by allocated'
expect_in output 'make_message  message.cpp:8'
case "$output" in *Table::add*) fail "$last: prints more than one site: $output" ;; esac
run "$SLUICE" profile demo.pb --sort short-lived
expect_in output 'top 1 of 1 sites by short-lived'
run "$SLUICE" profile demo.pb --sort peak
expect_in output 'top 4 of 4 sites by alive at the peak'

# Stacks: outermost first, no line or separator that a function could forge.
run "$SLUICE" profile demo.pb --collapsed stacks.txt --sort alloc
expect_status 0
expect_output ''
[ "$(wc -l <stacks.txt)" -eq 4 ] || fail "not four stacks: $(<stacks.txt)"
grep -qx 'main;load;Table::add;std::vector<>::_M_realloc_insert<>;operator new 100000000' stacks.txt || fail "$(<stacks.txt)"
[ "$(grep -cE '^main;.* [0-9]+$' stacks.txt)" -eq 4 ] || fail "$(<stacks.txt)"
run "$SLUICE" profile demo.pb --collapsed -
[ "$(wc -l <.output)" -eq 3 ] || fail "$last: $output"
run "$SLUICE" profile demo.pb --collapsed stacks.txt --text
expect_output "$text"

# Two processes as one.
run "$SLUICE" profile demo.pb demo.pb.gz
expect_in output 'alive at end  193 MiB in 22,020 blocks'
expect_in output 'heap profile of demo and others: 2 processes'
run "$SLUICE" profile - - <demo.pb
expect_one_line_error 2 'standard input can be one profile only'
python3 -B - "$fixtures" <<'END_OF_SCRIPT'
import sys
sys.path.insert(0, sys.argv[1])
import profile_writer
profile_writer.demo(rate=1).write("exact.pb")
profile_writer.demo(rate=1, times=3).write("more.pb")
go = profile_writer.Profile(types=profile_writer.TYPES[:4], comments=["made by another program"])
go.sample([[("main.work", "/src/work.go", 3)]], [10, 1000, 5, 500]).write("go.pb")
profile_writer.Profile(types=[("samples", "count"), ("cpu", "nanoseconds")]).write("cpu.pb")
profile_writer.Profile().write("nothing.pb")
END_OF_SCRIPT
run "$SLUICE" profile demo.pb exact.pb
expect_one_line_error 2 'exact.pb: cannot be merged with the one before'
run "$SLUICE" profile exact.pb
expect_in output 'all figures are exact'
case "$output" in *'95 % confidence'*) fail "$last: tells of an error: $output" ;; esac

# Profiles of others have fewer values.
run "$SLUICE" profile go.pb
expect_in output 'alive at end  500 B in 5 blocks'
expect_in output 'main.work  work.go:3'
case "$output" in *'at peak'*) fail "$last: shows what nobody knows: $output" ;; esac
run "$SLUICE" profile go.pb --sort peak
expect_one_line_error 2 'the profile does not tell what is alive at the peak'
run "$SLUICE" profile nothing.pb
expect_status 0
expect_in output 'no site has anything that is alive at the end'

# What has changed.
run "$SLUICE" profile --diff exact.pb more.pb
expect_status 0
expect_in output 'difference of two heap profiles: +193 MiB'
expect_in output '  +191 MiB  95.4 MiB   286 MiB   yes  Table::add  table.cpp'
run "$SLUICE" profile --diff exact.pb exact.pb
expect_in output 'no site differs'
run "$SLUICE" profile --diff demo.pb more.pb --sort alloc
expect_in output 'sampled at different rates'

# What it refuses.
refuses() { # STATUS TEXT ARGUMENTS...
  local code=$1 text=$2
  shift 2
  run "$SLUICE" profile "$@"
  expect_one_line_error "$code" "$text"
}
refuses 2 'which program, or which file?'
refuses 2 'which program?' --
refuses 2 'nosuch.pb: cannot be read: No such file' nosuch.pb
refuses 2 'cannot be read: Is a directory' .
refuses 2 'is no profile of memory' cpu.pb
refuses 2 'is no profile but text' "$fixtures/before.json"
refuses 2 'is no profile, or is damaged' "$(type -P true)"
: >empty.pb
refuses 2 'empty.pb: is empty' empty.pb
head -c 300 demo.pb >short.pb
refuses 2 'short.pb: is no profile, or is damaged' short.pb
head -c 300 demo.pb.gz >short.pb.gz
refuses 2 'short.pb.gz: is damaged: it cannot be decompressed' short.pb.gz
refuses 2 'short.pb: is no profile' --diff demo.pb short.pb
refuses 2 '--diff' --diff demo.pb
refuses 2 'takes two files and nothing else' demo.pb --diff demo.pb demo.pb
refuses 2 '--diff prints text only' --diff demo.pb demo.pb --html page.html
refuses 2 "what is 'demo.pb'?" demo.pb -- true
refuses 2 'are for a program that is run' demo.pb --rate 1
refuses 2 'are for a program that is run' demo.pb --all
refuses 2 "bad value '0'" --rate 0 -- true
refuses 2 "bad value '1X'" --rate 1X -- true
refuses 2 "bad value '-1'" --rate=-1 -- true
refuses 2 '--top' demo.pb --top 0
refuses 2 '--sort' demo.pb --sort size
refuses 2 "unknown option --htlm; did you mean '--html'?" demo.pb --htlm x
refuses 2 'excludes' --all --program x -- true
refuses 2 'two reports cannot go to one file' demo.pb --html x --pprof x
refuses 2 'nosuch/x.html cannot be written' demo.pb --html nosuch/x.html
refuses 2 'would both go to standard output' demo.pb --collapsed - --text
refuses 127 'nosuchprogram: not found' -- nosuchprogram
refuses 126 'Permission denied' -- "$fixtures/after.json"
[ ! -e x ] || fail 'a report that was refused is there'
if [ "$(id -u)" -ne 0 ]; then
  cp demo.pb secret.pb && chmod 0 secret.pb
  refuses 2 'Permission denied' secret.pb
fi
# A report that cannot be written takes nothing away.
echo before >page.html
refuses 2 'is no profile' short.pb --html page.html
[ "$(<page.html)" = before ] || fail 'the earlier report is gone'
# A link stays, and what it names is written.
ln -s linked.html other.html
ln -s other.html link.html
echo before >linked.html
for name in kept new; do
  run "$SLUICE" profile demo.pb --html link.html
  expect_status 0
  [ -L link.html ] && [ -L other.html ] || fail "the link to a $name report is gone"
  grep -q '<html' linked.html || fail "not written through the link to a $name report"
  rm linked.html
done
# One that leads nowhere stays, too.
ln -s turn.html back.html
ln -s back.html turn.html
for ((i = 0; i < 45; ++i)); do ln -s "far$((i + 1))" "far$i"; done
refuses 2 'Too many levels of symbolic links' demo.pb --html turn.html
refuses 2 'Too many levels of symbolic links' demo.pb --html far0
[ "$(find . -maxdepth 1 -type l -name 'far*' | wc -l)" -eq 45 ] && [ -L turn.html ] && [ -L back.html ] ||
  fail 'a link that leads nowhere is gone'
# Standard output needs no /dev/stdout, and makes none.
without_devices() { unshare --mount sh -c 'mount -t tmpfs none /dev && "$@" && [ -z "$(ls -A /dev)" ]' sh "$@"; }
if without_devices true 2>errors; then
  run without_devices "$SLUICE" profile demo.pb --collapsed -
  expect_status 0
  [ "$(wc -l <.output)" -eq 3 ] || fail "$last: $output"
fi
if [ -w /dev/full ]; then
  for arguments in '' '--collapsed -' '--html /dev/full' '--pprof /dev/full'; do
    "$SLUICE" profile demo.pb $arguments >/dev/full 2>errors
    status=$?
    last="sluice profile demo.pb $arguments to a full disk"
    errors=$(<errors)
    expect_status 1
    expect_in errors 'No space left on device'
  done
fi
finish
