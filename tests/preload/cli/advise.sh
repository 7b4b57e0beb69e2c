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

# Options that help by themselves are tried at once, too: what is better than each is advised, as one setting.
# Their memory decides, which no other work of the machine changes.
cat > options.c <<'P'
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static size_t mib_without(const char* name, const char* value) {
  const char* const set = getenv(name);
  return set != NULL && strcmp(set, value) == 0 ? 0 : 8;
}
int main(void) {
  const size_t cache = mib_without("SLUICE_CACHE", "1M"), huge = mib_without("SLUICE_HUGE_PAGES", "on");
  const size_t bytes = (2 + (EITHER ? cache * huge / 8 : cache + huge)) << 20;
  void* const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  memset(memory, 1, bytes);
  return 0;
}
P
cc -DEITHER=0 -o both options.c || fail 'no program'
cc -DEITHER=1 -o either options.c || fail 'no program'
run "$SLUICE" advise --runs 5 --text --json both.json -- ./both
expect_status 0
expect_in output 'SLUICE_CACHE=1M SLUICE_HUGE_PAGES=on'
python3 - <<'P' || fail 'not the advice for two options'
import json
advice = json.load(open("both.json"))
assert advice["measured_at_once"][-1].startswith("sluice:CACHE=1M+HUGE_PAGES=on"), advice["measured_at_once"]
assert len(advice["comparison_at_once"]["allocators"]) == len(advice["measured_at_once"])
assert all("+" not in name for name in advice["tried"] + advice["measured_again"]), advice["tried"]
settings = [each["setting"] for each in advice["advice"] if each["kind"] == "option"]
assert {"SLUICE_CACHE=1M", "SLUICE_HUGE_PAGES=on"} <= set(settings), settings
assert any(each.startswith("SLUICE_CACHE=1M SLUICE_HUGE_PAGES=on") for each in settings), settings
P
# Not where one of them does all of it.
run "$SLUICE" advise --runs 5 --text --json either.json -- ./either
expect_status 0
expect_in output 'SLUICE_CACHE=1M: '
python3 - <<'P' || fail 'two options are advised where one does it'
import json
advice = json.load(open("either.json"))
assert advice["measured_at_once"][-1].startswith("sluice:CACHE=1M+HUGE_PAGES=on"), advice["measured_at_once"]
assert not any("+" in each["name"] for each in advice["advice"]), advice["advice"]
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
