#!/usr/bin/env bash
# `sluice bench`: every built-in scenario runs, and those that are about memory at rest say what is resident then.
. "$(dirname "$0")/testing.sh"
[ -x "$(dirname "$SLUICE")/scenarios/pair" ] || skip 'the scenarios are not built'
export TMPDIR=$workspace/temporary
mkdir "$TMPDIR"

run "$SLUICE" bench run built-in --with sluice --rounds 1 --quiesce 0.01 --no-latency --seconds 0.001 --json all.json
expect_status 0
python3 - <<'END' || fail 'the JSON file'
import json
scenarios = {each["name"]: each for each in json.load(open("all.json"))["scenarios"]}
for name, each in scenarios.items():
    assert each["failures"] == {} and each["cases"], (name, each["failures"])
    assert all(case["allocators"]["sluice"]["median"] > 0 for case in each["cases"]), name
    assert each["memory"]["sluice"]["peak_kib"]["median"] > 0, name
for name in ("holes", "holes_with_thread"):
    figures = scenarios[name]["figures"]["sluice"]
    assert all(figures["resident_" + when] > 0 for when in ("full", "sparse", "at_rest")), figures
assert scenarios["idle_threads"]["figures"]["sluice"]["kib_per_thread_at_rest"] > 0
END

# Without a rest there is no figure of it.
figures() { python3 -c 'import json; print(sorted(json.load(open("f.json"))["scenarios"][0]["figures"].get("sluice", {})))'; }
for scenario in 'holes --ops 1000' 'idle_threads --ops 4 --threads 4'; do
  run "$SLUICE" bench run $scenario --with sluice --rounds 1 --quiesce 0 --no-latency --json f.json
  expect_status 0
  case "$(figures)" in *at_rest*) fail "$scenario: rested against the wish: $(figures)" ;; esac
done
finish
