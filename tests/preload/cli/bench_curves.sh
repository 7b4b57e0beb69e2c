#!/usr/bin/env bash
# `sluice bench --threads 1,2,4`: each scenario with each number of threads, the speed-ups in tables and in the JSON
# document, and lists that are wrong.
. "$(dirname "$0")/testing.sh"
[ -x "$(dirname "$SLUICE")/scenarios/pair" ] || skip 'the scenarios are not built'
export TMPDIR=$workspace/temporary
mkdir "$TMPDIR"

# The real programs: with as many threads as they are told, and with figures that follow from the medians.
run "$SLUICE" bench run pair churn --threads 1,2 --ops 1000 --rounds 1 --quiesce 0 --with system,sluice --json c.json \
  --markdown c.md --html c.html
expect_status 0
expect_in errors '2 scenarios with 1 and 2 threads under 2 allocators: 8 runs in which memory is read; 8 timed runs; 8 runs in which each call is timed.'
for name in pair churn; do
  expect_in output "$name by threads: ns per operation (speed-up, of linear)"
  grep -q "^| $name by threads: ns per operation (speed-up, of linear) | *system | *sluice |" c.md ||
    fail "no table of $name in the Markdown file: $(cat c.md)"
done
expect_in output 'pair@2, malloc'
expect_in output 'Behind @ stands the number of threads: 1 and 2.'
grep -q '"curves":\[{' c.html || fail 'the page does not hold the curves'
python3 - <<'END_OF_SCRIPT' || fail 'the JSON file'
import json
document = json.load(open("c.json"))
assert document["schema"] == "sluice-bench 2" and document["threads"] == [1, 2] and document["processors"] >= 1
scenarios = [(each["name"], each["group"], each["threads"]) for each in document["scenarios"]]
assert scenarios == [(f"{name}@{threads}", name, threads) for name in ("pair", "churn") for threads in (1, 2)], scenarios
cases = {case["name"]: case["allocators"] for each in document["scenarios"] for case in each["cases"]}
assert list(cases) == ["pair@1", "pair@2", "churn@1", "churn@2"], cases
assert [(each["scenario"], each["name"]) for each in document["curves"]] == [("pair", "pair"), ("churn", "churn")]
for curve in document["curves"]:
    assert [point["threads"] for point in curve["points"]] == [1, 2], curve
    for point in curve["points"]:
        assert point["over_committed"] == (point["threads"] > document["processors"]), point
        assert point["case"] == f"{curve['name']}@{point['threads']}", point
        for name in ("system", "sluice"):
            figures = point["allocators"][name]
            assert figures["median"] == cases[point["case"]][name]["median"], figures
            fewest = cases[curve["name"] + "@1"][name]["median"]
            assert abs(figures["speed_up"] * figures["median"] - fewest) < 1e-6 * fewest, figures
            assert abs(figures["of_linear"] * point["threads"] - figures["speed_up"]) < 1e-9, figures
END_OF_SCRIPT

# Such results are compared, number by number; and with those of a single one.
run "$SLUICE" compare --diff c.json c.json
expect_status 0
expect_in output '16 figures are in both'
run "$SLUICE" bench run pair --threads 2 --ops 1000 --rounds 1 --quiesce 0 --with system,sluice --no-latency --json one.json
expect_status 0
case "$output" in *speed-up* | *pair@*) fail "a curve of one number of threads: $output" ;; esac
python3 -c 'import json; d = json.load(open("one.json"))
assert d["threads"] == 2 and d["curves"] == [] and d["scenarios"][0]["name"] == "pair" and d["scenarios"][0]["threads"] == 2, d' ||
  fail 'one number of threads is told in another way'
run "$SLUICE" compare --diff one.json c.json
expect_one_line_error 2 'no figure in common'

# Scripts in the place of the scenarios, which tell the same times on every machine: 40 ns divided by the threads, but
# by two at most; under Sluice 64 ns divided by the threads.
root=$workspace/root
mkdir -p "$root/bin" "$root/lib/sluice/scenarios/programs"
cp "$SLUICE" "$root/bin/sluice"
libraries=$(dirname "$(dirname "$SLUICE")")/lib
cp "$libraries/libsluice.so" "$root/lib/"
cp "$libraries"/sluice/* "$root/lib/sluice/" 2>/dev/null
scenario() {
  cat >"$root/lib/sluice/scenarios/$1" <<END_OF_SCRIPT
#!/bin/sh
echo "\$*" >>$workspace/calls
threads=0
while [ \$# -gt 0 ]; do
  case \$1 in --threads) threads=\$2; shift ;; esac
  shift
done
$2
case \$LD_PRELOAD in
  *libsluice.so*) ns=\$((64 / threads)) ;;
  *) ns=\$((40 / (threads < 2 ? threads : 2))) ;;
esac
echo "{\"scenario\":\"x\",\"ops\":10,\"cases\":[{\"name\":\"$1\",\"ops\":10,\"ns_per_op\":\$ns}],\"peak_rss_kib\":1000}"
END_OF_SCRIPT
  chmod +x "$root/lib/sluice/scenarios/$1"
}
few='--with system,sluice --rounds 2 --quiesce 0 --no-latency'
sluice=$root/bin/sluice
scenario pair ''
run taskset -c "$(taskset -cp $$ | grep -o '[0-9]*$')" "$sluice" bench run pair $few --threads 4,1,8 --markdown e.md --json e.json
expect_status 0
expect_in output 'pair by threads: ns per operation (speed-up, of linear)               system               sluice
1                                                        40.0 (1.00×, 100 %)  64.0 (1.00×, 100 %)
4, over-committed                                         20.0 (2.00×, 50 %)  16.0 (4.00×, 100 %)
8, over-committed                                         20.0 (2.00×, 25 %)  8.00 (8.00×, 100 %)
'
expect_in output 'Over-committed: there is 1 processor here, and more threads than that take turns.'
case "$output" in *'Speed-up: the throughput'*) fail "an explanation that nobody asked for: $output" ;; esac
grep -q 'Speed-up: the throughput with so many threads' e.md || fail "Markdown does not say what it shows: $(cat e.md)"
grep -q 'Over-committed: there is 1 processor' e.md || fail 'Markdown does not tell of the processors'
grep -q '^| 4, over-committed .*| *20.0 (2.00×, 50 %) | *16.0 (4.00×, 100 %) |$' e.md || fail "Markdown: $(cat e.md)"
# Round by round: all numbers of threads in one before the next.
order=$(grep -o 'threads [0-9]*' calls | uniq | tr -d 'a-z\n')
[ "$order" = ' 1 4 8 1 4 8 1 4 8' ] || fail "the numbers of threads are not interleaved: $order"
run "$sluice" bench run pair $few --threads 1,2 --explain
expect_in output 'Speed-up: the throughput'

# A scenario that needs more threads has no point with fewer, and that is said.
scenario fan ''
run "$sluice" bench run fan_out $few --threads 1,2,4 --json f.json
expect_status 0
expect_in errors 'sluice: bench: fan_out is left out with 1 thread: it needs 2'
python3 -c 'import json; d = json.load(open("f.json"))
assert [each["name"] for each in d["scenarios"]] == ["fan_out@2", "fan_out@4"], d["scenarios"]' || fail 'the points of fan_out'

# An allocator that fails with one number keeps the figures of the others.
scenario lifo 'case $threads$LD_PRELOAD in 2*libsluice.so*) exit 3 ;; esac'
run "$sluice" bench run lifo $few --threads 1,2,4
expect_status 1
expect_in errors 'lifo@2 under sluice: exit status 3'
expect_in output '64.0 (1.00×, 100 %)'
expect_in output '16.0 (4.00×, 100 %)'
expect_in output 'failed'

# Those that take no threads are left out of curves, and run as they are with a single number.
printf '{"summary": "x", "needs": [], "command": ["true"], "operations": 1, "unit": "x"}\n' >"$root/lib/sluice/scenarios/programs/nothing.json"
scenario request ''
run "$sluice" bench --all --with system --rounds 1 --quiesce 0 --no-latency --threads 1,2
expect_status 0
expect_in errors 'sluice: bench: left out, since they take no --threads: producer_consumer, littered_heap,'
expect_in errors 'request,'
expect_in errors ', nothing
'
expect_in output 'lifo@2'
case "$output" in *nothing* | *request*) fail "what takes no threads was run: $output" ;; esac
run "$sluice" bench run programs pair --with system --rounds 1 --quiesce 0 --no-latency --threads 2
expect_status 0
expect_in output 'nothing'

refuses() {
  run "$SLUICE" bench "${@:2}"
  expect_one_line_error 2 "$1"
}
for list in 1,,2 ',' '1,' 0 2,0 a 1,b 257 -1 1.5 '1 2'; do
  refuses 'is no number of threads from 1 to 256; several stand between commas, as in 1,2,4' run pair "--threads=$list"
done
refuses "'257' is no" run pair --threads 1,257
refuses '1 is there twice' run pair --threads 1,1
refuses '--threads: 4 is there twice' run pair --threads 4,8,4
refuses '--threads' run pair --threads=
refuses '--threads' run pair --threads 1 --threads 2
refuses 'request_plain takes no --threads' run pair request --threads 1,2
refuses 'none of these scenarios takes --threads' run programs --threads 1,2
[ -z "$(ls "$TMPDIR")" ] || fail "a temporary folder was left: $(ls "$TMPDIR")"
finish
