#!/usr/bin/env bash
# `sluice compare` with odd programs, paths, limits, descriptors and report files.
. "$(dirname "$0")/testing.sh"
python=$(python3 -c 'import sys; print(sys.executable)') || skip 'no python3'
library=$("$SLUICE" run -- sh -c 'echo "$LD_PRELOAD"')
once="compare --runs 1 --warmup 0"

# Paths with letters that records or shells are fond of.
odd=$'tab\tnew\nline%d"'
mkdir "$odd"
cp "$library" "$odd/libsluice.so"
run "$SLUICE" $once --with "system,odd=$odd/libsluice.so" -- true
expect_status 0
printf 'echo "$1"\n' >script
chmod +x script
run "$SLUICE" $once --with system,sluice --json odd.json -- ./script $'a b\n\'"ü\xff'
expect_status 0
"$python" -c 'import json; assert json.load(open("odd.json", encoding="utf-8"))["command"][1].startswith("a b\n\x27\"ü")' ||
  fail 'the JSON file is not UTF-8'

# A program that becomes another one without the allocator is refused, though it had the allocator itself.
run "$SLUICE" $once --with system,sluice -- env -i sort /dev/null
expect_status 1
expect_in output 'Error: sluice: refused: the program became sort, which did not load what was preloaded.'
run "$SLUICE" $once --with system,sluice -- env A=B sort /dev/null
expect_status 0
run "$SLUICE" $once --with system,sluice -- sh -c 'exec ./script x'
expect_status 0

# Limits of the program's own.
run "$SLUICE" $once --with system -- sh -c 'ulimit -f 0; env true; test $? -eq 0'
expect_status 0
case "$output" in *'exit status'*) fail 'the proof of the allocator ends a process that may write no files' ;; esac
run "$SLUICE" $once --with system,sluice -- "$python" -c 'import os; os.closerange(0, 1000); os._exit(0)'
expect_status 0
cat >limited.py <<'END_OF_SCRIPT'
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
os.execv(sys.argv[1], sys.argv[1:])
END_OF_SCRIPT
run "$python" limited.py "$SLUICE" $once --with system --json large.json -- true
expect_one_line() { [ "$(wc -l <"$workspace/.errors")" -eq 1 ] || fail "$last: not one line: $errors"; }
expect_status 1
expect_one_line
expect_in errors 'large.json cannot be written: File too large'
[ -z "$(ls -A | grep large.json)" ] || fail 'a part of a report was left'

# Closed standard descriptors are no numbers for files of ours.
cat >closed.py <<'END_OF_SCRIPT'
import os, sys
for number in 0, 1, 2:
    os.close(number)
os.execv(sys.argv[1], sys.argv[1:])
END_OF_SCRIPT
run "$python" closed.py "$SLUICE" $once --with system,sluice --json closed.json -- sh -c 'echo hello; echo error >&2; cat'
expect_status 1
"$python" - <<'END_OF_SCRIPT' || fail "standard descriptors that are closed: $(head -c 300 closed.json)"
import json
document = json.load(open("closed.json"))
assert all(each["failure"] is None and each["wait_status"] == 0 for each in document["allocators"]), document
END_OF_SCRIPT

# Input that cannot be read again for each run.
mkfifo fifo
run timeout -s KILL 30 "$SLUICE" $once --with system --input fifo -- cat
expect_one_line_error 2 '--input fifo'
run "$SLUICE" $once --timeout nan --with system -- true
expect_one_line_error 2 '--timeout'

# Reports: a link stays a link, standard output is not replaced, and the mask of modes holds.
echo old >target
ln -s target link
run "$SLUICE" $once --with system --json link -- true
expect_status 0
[ -L link ] && grep -q schema target || fail 'a link was replaced by a report'
ln -s /proc/self/fd/1 output-link
"$SLUICE" $once --with system --markdown output-link -- true >both
[ -L output-link ] || fail 'the link to standard output was replaced'
grep -q '^median of a run' both && grep -q '^| median' both || fail "the report at standard output: $(cat both)"
(umask 077 && "$SLUICE" $once --with system --json private.json -- true >/dev/null)
[ "$(stat -c %a private.json)" = 600 ] || fail "modes of a report: $(stat -c %a private.json)"

# A load's figure: the first line that has one; lines without end do no harm; what is no number is refused.
run timeout 60 "$SLUICE" $once --with system --metric '(x*)y|took ([0-9]+)' \
  --load 'head -c 900000 /dev/zero | tr "\0" x' -- sleep 4741
expect_status 1
expect_in output 'the load printed nothing that --metric matches'
run "$SLUICE" $once --with system --metric 'took ([0-9]+)' --json s.json --load 'echo took 5; echo took 6' -- sleep 4742
expect_status 0
"$python" -c 'import json; assert json.load(open("s.json"))["allocators"][0]["metrics"]["load_figure"]["samples"] == [5]' ||
  fail 'not the first figure'
run "$SLUICE" $once --with system --metric 'took (.*)' --load 'echo took nan' -- sleep 4743
expect_status 1
expect_in output "found 'nan', which is no number"
# What a load leaves is ended, the service is not.
run "$SLUICE" $once --with system --load 'setsid sleep 4744 & kill -0 $(cat served)' --ready 'test -s served' -- \
  sh -c 'echo $$ >served; exec sleep 4745'
expect_status 0
pgrep -f 'sleep 474[45]' && fail 'processes of a load were left'

# Terminals get no control characters of a program, and no praise for what did something else.
run "$SLUICE" $once --with system -- sh -c "printf 'oh\\033[31mno' >&2; kill -SEGV \$\$"
case "$output" in *$'\033'*) fail 'the terminal got control characters of the program' ;; esac
run "$SLUICE" compare --runs 5 --warmup 0 --with system,sluice -- \
  sh -c 'case $LD_PRELOAD in *libsluice.so*) exit 4 ;; esac; sleep 0.05'
expect_status 1
case "$output" in *'Fastest: sluice'*) fail 'the one that failed is called the fastest' ;; esac
finish
