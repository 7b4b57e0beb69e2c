#!/usr/bin/env bash
# `sluice compare`: tables, files, proof of the allocator, differences in what programs do.
. "$(dirname "$0")/testing.sh"
export TMPDIR=$workspace/temporary
mkdir "$TMPDIR"
seq 20000 | awk '{ print ($1 * 7919) % 20011 }' >numbers

run "$SLUICE" compare --runs 6 --warmup 1 --with system,sluice --json c.json --markdown c.md -- sort numbers
expect_status 0
expect_in output 'sort numbers'
expect_in output '6 runs each after 1 to warm up'
expect_in output 'against system'
[ -z "$errors" ] || fail "a progress bar without a terminal: $errors"
case "$output" in *$'\033'*) fail 'colour without a terminal' ;; esac
python3 - <<'END' || fail 'the JSON file'
import json
document = json.load(open("c.json"))
assert document["schema"] == "sluice-compare 1" and document["command"] == ["sort", "numbers"], document
assert document["baseline"] == "system" and not document["partial"] and document["output_compared"]
assert document["differences"] == [] and document["rounds"] == 6 and document["warmup"] == 1
for allocator in document["allocators"]:
    assert allocator["failure"] is None and allocator["wait_status"] == 0
    for name, metric in allocator["metrics"].items():
        assert len(metric["samples"]) == 6, (name, metric)
        assert min(metric["samples"]) <= metric["median"] <= max(metric["samples"])
    # Peak memory is the program's, not that of the command which started it.
    assert 1000 < allocator["metrics"]["peak_rss_kib"]["median"] < 20000, allocator
    assert allocator["metrics"]["wall_seconds"]["median"] > 0
sluice = document["allocators"][1]
assert sluice["library"].endswith("libsluice.so")
assert sluice["metrics"]["wall_seconds"]["ratio"]["low"] <= sluice["metrics"]["wall_seconds"]["ratio"]["value"]
END
grep -q '^| system ' c.md || fail "no table in the Markdown file: $(cat c.md)"
grep -qF '`sort numbers` on Linux' c.md || fail 'the Markdown file does not say what ran where'

# Every process that a program starts is served, and only by the allocator.
run "$SLUICE" compare --runs 1 --warmup 0 --with system,sluice -- sh -c 'sort numbers | tail -1; exit 0'
expect_status 0

# One that loads and serves nothing is refused: a library without malloc.
echo 'int nothing_at_all;' >nothing.c
"$CC" -shared -fPIC nothing.c -o nothing.so || fail 'cannot build a library'
run "$SLUICE" compare --runs 1 --warmup 0 --with system,nothing=nothing.so -- sort numbers
expect_status 1
expect_in output 'Error: nothing: refused: malloc or free of process'

# A program at a fixed address that takes malloc's has a stand-in for it; one that has a malloc of its own is refused.
echo '#include <stdlib.h>
void *(*volatile chosen)(size_t) = malloc; int main(void) { free(chosen(10)); return 0; }' >fixed.c
"$CC" -O1 -fno-pie -no-pie -fno-builtin fixed.c -o fixed || fail 'cannot build a program'
run "$SLUICE" compare --runs 1 --warmup 0 --with system,sluice -- ./fixed
expect_status 0
echo 'static char room[1000000]; static char *next = room; typedef unsigned long size;
void *malloc(size n) { char *at = next; next += (n + 15) & ~15ul; return at; } void free(void *p) { (void)p; }
void *calloc(size n, size m) { return malloc(n * m); } void *realloc(void *p, size n) { (void)p; return malloc(n); }
int main(void) { return 0; }' >own.c
"$CC" -O1 -fno-builtin -rdynamic own.c -o own || fail 'cannot build a program'
run "$SLUICE" compare --runs 1 --warmup 0 --with system,sluice -- ./own
expect_status 1
expect_in output 'Error: sluice: refused: malloc or free of process'
expect_in output 'Note: system: the program brings a malloc of its own'

# Output and exit status that differ between allocators are errors, and are shown.
run "$SLUICE" compare --runs 2 --warmup 0 --with system,sluice -- \
  sh -c 'echo same; case $LD_PRELOAD in *libsluice.so*) echo that ;; *) echo this ;; esac'
expect_status 1
expect_in output "Error: sluice printed something else than system: line 2 is 'that', not 'this'"
run "$SLUICE" compare --ignore-output --runs 2 --warmup 0 --with system,sluice -- \
  sh -c 'case $LD_PRELOAD in *libsluice.so*) echo other ;; *) echo this ;; esac'
expect_status 0
run "$SLUICE" compare --runs 2 --warmup 0 --with system,sluice -- \
  sh -c 'case $LD_PRELOAD in *libsluice.so*) exit 4 ;; esac'
expect_status 1
expect_in output 'Error: sluice ended with exit status 4, system with exit status 0'
run "$SLUICE" compare --runs 2 --warmup 0 --with system,sluice -- sh -c 'date +%N'
expect_status 0
expect_in output 'the output differs from run to run under the same allocator'
run "$SLUICE" compare --runs 2 --warmup 0 --with system,sluice -- sh -c 'exit 7'
expect_status 0
expect_in output 'Note: the program ends with exit status 7.'
run "$SLUICE" compare --runs 3 --warmup 0 --with system -- sh -c 'echo run >>count; test $(wc -l <count) -lt 2'
expect_status 1
expect_in output 'Error: system: exit status 0 at first, then exit status 1'

# Crashes are told with what the program said.
run "$SLUICE" compare --runs 3 --warmup 0 --with system -- sh -c 'echo ouch >&2; kill -SEGV $$'
expect_status 1
expect_in output 'Error: system: ended by signal 11 (Segmentation fault): ouch.'

# Standard input: nothing, or the file, anew for each run.
run "$SLUICE" compare --runs 2 --with system -- sh -c 'test -z "$(cat)"' <<<'not for the program'
expect_status 0
run "$SLUICE" compare --runs 2 --with system --input numbers -- sh -c 'test $(wc -l) -eq 20000'
expect_status 0

# By default there are twenty runs, and more where they tell too little.
run "$SLUICE" compare --with system,sluice --json default.json -- true
expect_status 0
python3 -c 'import json; d = json.load(open("default.json"))
assert 20 <= d["rounds"] <= 100, d["rounds"]
assert all(len(m["samples"]) == d["rounds"] for a in d["allocators"] for m in a["metrics"].values())' ||
  fail 'the default number of runs'

# Every call is timed in one more run, and told everywhere.
run "$SLUICE" compare --runs 1 --warmup 0 --latency --explain --with system,sluice --json l.json --markdown l.md --html l.html -- sort numbers
expect_status 0
expect_in output 'latency, ns: p50 / p99 / p99.9 / p99.99 / max'
expect_in output 'is subtracted'
grep -q 'p99.99' l.md || fail 'the Markdown file has no latencies'
python3 -c 'import json
for each in json.load(open("l.json"))["allocators"]:
    assert each["latency"]["malloc"]["count"] > 0, each
    # Null when the run ended before anybody looked at its memory.
    assert each["timeline"] is None or each["timeline"]["rss_kib"], each' || fail 'the JSON file has no latencies'

# Too few runs give figures, but no verdict.
run "$SLUICE" compare --runs 2 --warmup 0 --with system,sluice -- true
expect_status 0
expect_in output 'too few runs to tell'
[ -z "$(ls "$TMPDIR")" ] || fail 'a temporary folder was left'
finish
