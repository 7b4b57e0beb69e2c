#!/usr/bin/env bash
# `sluice advise` finds the sites of a program whose kinds are known, each as what it is, and advises only what it has
# measured. It refuses what it cannot run before anything runs.
. "$(dirname "$0")/testing.sh"

c++ -O1 -g -fno-builtin -o subject "$fixtures/advise_subject.cpp" -pthread || skip 'no compiler for C++'
run "$SLUICE" advise --runs 5 --rate 1K --text --json advice.json -- ./subject
expect_status 0
expect_in output 'advice for ./subject'
expect_in output 'The code: what the profile saw'
expect_in output 'see lib/docs/frames-and-scopes.md'
python3 - <<'P' || fail 'not the advice for these sites'
import json
advice = json.load(open("advice.json"))
assert advice["schema"] == "sluice-advice 1" and not advice["partial"], advice
assert advice["tried"][0] == "sluice" and "sluice:CACHE=256K" in advice["tried"] and "system" in advice["tried"], advice["tried"]
found = {(each["kind"], each["site"].split("::")[-1].split("(")[0].split()[0]) for each in advice["code"]}
for each in [("short-lived", "message"), ("other-thread", "handed_over"), ("rounding", "far_above"), ("growth", "table"),
             ("small-and-many", "node")]:
    assert each in found, (each, found)
for each in [("rounding", "just_above"), ("other-thread", "message"), ("short-lived", "handed_over"),
             ("small-and-many", "message"), ("short-lived", "node")]:
    assert each not in found, (each, found)
# Whatever is advised was measured again, and its interval does not hold 1.
measured = advice["comparison"]
for each in advice["advice"]:
    assert each["gains"] and each["name"] in advice["measured_again"], each
    metrics = next(a["metrics"] for a in measured["allocators"] if a["name"] == each["name"])
    ratios = [metrics[name]["ratio"] for name in ("wall_seconds", "peak_all_kib") if metrics.get(name, {}).get("ratio")]
    assert any(ratio["high"] < 1 for ratio in ratios), (each, metrics)
P

# What allocates nothing gets no advice on its code.
run "$SLUICE" advise --runs 5 -- true
expect_status 0
expect_in output 'no site where the code would gain much'

run "$SLUICE" advise
expect_one_line_error 2 'which program?'
run "$SLUICE" advise --
expect_one_line_error 2 'which program?'
run "$SLUICE" advise --rate none -- true
expect_one_line_error 2 "bad value 'none'"
run "$SLUICE" advise --runs 2 -- true
expect_status 2
run "$SLUICE" advise -- no-such-program
expect_one_line_error 127 'no-such-program'
run "$SLUICE" advise --json /nonexistent/advice.json -- true
expect_status 2
run "$SLUICE" advise -- sh -c 'kill -9 $$'
expect_one_line_error 1 'under sluice: ended by signal 9'
finish
