#!/usr/bin/env bash
# `sluice bench`: built-in scenarios under two allocators, and all that is reported of them.
. "$(dirname "$0")/testing.sh"
[ -x "$(dirname "$SLUICE")/scenarios/pair" ] || skip 'the scenarios are not built'
export TMPDIR=$workspace/temporary
mkdir "$TMPDIR"

run "$SLUICE" bench list
expect_status 0
for name in pair request_frame producer_consumer sqlite3 redis; do expect_in output "$name "; done

few='--with system,sluice --rounds 5 --quiesce 0.05'
run "$SLUICE" bench run pair request $few --seed 7 --seconds 0.02 --json b.json --markdown b.md --html b.html
expect_status 0
# Before it starts it says what it will do, and how long that takes: request has four kinds of memory, one of them plain.
[ "$errors" = '5 scenarios under 2 allocators: 10 runs in which memory is read, 4 of them with 0.05 s of rest at the end (--quiesce); 50 timed runs; 4 runs in which each call is timed. About 1 s if a run takes 0.02 s.' ] ||
  fail "it says something else on standard error without a terminal: $errors"
case "$output" in *$'\033'*) fail 'colour without a terminal' ;; esac
expect_in output 'ns per operation'
expect_in output 'peak RSS, MiB'
expect_in output 'RSS after 0.05 s of rest, MiB'
expect_in output 'pair, malloc'
expect_in output 'benefit, ns per operation'
grep -q '^| pair  *| ' b.md || fail "no table in the Markdown file: $(cat b.md)"
grep -q '"schema": "sluice-bench 2"' b.html || grep -q 'sluice-bench 2' b.html || fail 'the page does not hold the results'
python3 - <<'END' || fail 'the JSON file'
import json
document = json.load(open("b.json"))
assert document["schema"] == "sluice-bench 2" and not document["partial"] and document["baseline"] == "system"
assert document["rounds"] == 5 and document["seed"] == 7 and document["quiet_seconds"] == 0.05
assert document["reproduce"][1:4] == ["bench", "run", "pair"], document["reproduce"]
scenarios = {each["name"]: each for each in document["scenarios"]}
assert set(scenarios) == {"pair", "request_plain", "request_scope", "request_frame", "request_monotonic"}, scenarios.keys()
assert scenarios["request_scope"]["not_applicable"] == ["system"]
assert all(each["failures"] == {} for each in scenarios.values())
pair = scenarios["pair"]
assert pair["kind"] == "built-in" and pair["variant"] is None
for name in ("system", "sluice"):
    case = pair["cases"][0]["allocators"][name]
    assert len(case["samples"]) == 5 and min(case["samples"]) <= case["median"] <= max(case["samples"])
    assert case["interval"]["low"] <= case["median"] <= case["interval"]["high"]
    assert abs(case["ops_per_second"] * case["median"] - 1e9) < 1e3
    memory = pair["memory"][name]
    assert len(memory["peak_kib"]["samples"]) == 5 and memory["quiet_kib"] > 0
    assert memory["timeline"]["rss_kib"] and max(memory["timeline"]["rss_kib"]) < 100000
    latency = pair["latency"][name]
    for kind in ("malloc", "free"):
        curve = latency[kind]
        # The scenario allocates each of its operations' blocks, and frees it.
        assert curve["count"] >= pair["cases"][0]["ops"], curve
        assert 0 <= curve["p50"] <= curve["p99"] <= curve["p99_9"] <= curve["p99_99"] <= curve["max"]
    assert latency["overhead_ns"] > 0
assert pair["cases"][0]["allocators"]["sluice"]["against_baseline"]["low"] > 0
# --seconds gives all allocators the same work.
assert len({len(a["samples"]) for a in pair["cases"][0]["allocators"].values()}) == 1
END

# The same seed is the same work: counted, not timed.
for name in one two; do
  "$SLUICE" bench run lifo --with system --rounds 1 --quiesce 0 --seed 3 --ops 5000 --json $name.json >/dev/null || fail 'lifo'
done
counts() { python3 -c 'import json, sys; l = json.load(open(sys.argv[1]))["scenarios"][0]["latency"]["system"]
print(l["malloc"]["count"], l["free"]["count"])' "$1"; }
[ "$(counts one.json)" = "$(counts two.json)" ] || fail "other work for the same seed: $(counts one.json), $(counts two.json)"

# What is left out is not measured, and not shown.
run "$SLUICE" bench run pair --with system,sluice --rounds 9 --rounds 1 --quiesce 9 --quiesce 0 --no-latency --ops 1000 --json c.json
expect_status 0
python3 -c 'import json; s = json.load(open("c.json"))["scenarios"][0]
assert s["latency"] is None and s["memory"]["sluice"]["quiet_kib"] is None, s' || fail 'rest or latency against the wish'
case "$output" in *p99* | *rest*) fail "a table of nothing: $output" ;; esac

# Threads, where the scenario lets them be chosen.
run "$SLUICE" bench run fifo --with system --rounds 1 --quiesce 0 --threads 3 --ops 60000 --json d.json
expect_status 0
python3 -c 'import json; d = json.load(open("d.json")); assert d["threads"] == 3 and d["scenarios"][0]["threads"] == 3' ||
  fail 'the threads are not told'

# A library without malloc serves nothing, and is refused.
echo 'int nothing_at_all;' >nothing.c
"$CC" -shared -fPIC nothing.c -o nothing.so || fail 'cannot build a library'
run "$SLUICE" bench run pair --with system,nothing=nothing.so --rounds 1 --quiesce 0 --ops 1000
expect_status 1
expect_in errors 'pair under nothing: refused: malloc or free of process'
expect_in output 'failed'

# Two results are compared.
run "$SLUICE" compare --diff b.json b.json
expect_status 0
expect_in output 'Nothing is worse than before.'
python3 - <<'END'
import json
document = json.load(open("b.json"))
for name, factor in (("even", 1), ("slower", 1.1)):
    place = document["scenarios"][0]["cases"][0]["allocators"]["sluice"]
    place["samples"] = [factor * each for each in (10.0, 10.1, 10.2, 10.1, 10.0)]
    json.dump(document, open(name + ".json", "w"))
END
run "$SLUICE" compare --diff even.json slower.json
expect_status 1
expect_in output 'pair'
expect_in output 'Something is worse than before.'
run "$SLUICE" compare --diff slower.json even.json
expect_status 0
expect_in output 'faster'

refuses() {
  local text=$1
  shift
  run "$SLUICE" bench "$@"
  expect_one_line_error 2 "$text"
}
refuses 'which scenarios?'
refuses "did you mean 'pair'" run piar
refuses "did you mean 'mimalloc'" run pair --with mimaloc
refuses 'no such file' run pair --with mine=/nonexistent.so
refuses 'either scenarios, or --all' run pair --all
refuses 'use --seconds' --all --ops 10
refuses 'either --ops or --seconds' run pair --ops 10 --seconds 1
refuses 'takes no --threads' run request --threads 2
refuses 'fan_out needs --threads of at least 2' run fan_out --threads 1
refuses '--rounds' run pair --rounds 0
refuses 'is no number of seconds' run pair --seconds nan
refuses 'is no number of seconds' run pair --quiesce 601
refuses 'two reports cannot go to one file' run pair --json x --html x
refuses '/nonexistent/x' run pair --json /nonexistent/x
[ -z "$(ls "$TMPDIR")" ] || fail "a temporary folder was left: $(ls "$TMPDIR")"
finish
