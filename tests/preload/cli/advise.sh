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
assert advice["tried"][0] == "sluice" and "sluice:CACHE=256K" in advice["tried"] and "sluice:RETAIN=0" in advice["tried"] and "system" in advice["tried"], advice["tried"]
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
# advise_both PROGRAM ADVISED: both options help it; at once they are advised, or not, as ADVISED (yes, no) says.
advise_both() {
  run "$SLUICE" advise --runs 5 --text --json "$1.json" -- "./$1"
  expect_status 0
  expect_in output 'SLUICE_CACHE=1M'
  python3 - "$1.json" "$2" <<'P' || fail "not the advice for two options of $1"
import json, sys
advice = json.load(open(sys.argv[1]))
both = {"CACHE=1M", "HUGE_PAGES=on"}
at_once = advice["measured_at_once"][-1]
assert both <= set(at_once.removeprefix("sluice:").split("+")), at_once
assert len(advice["comparison_at_once"]["allocators"]) == len(advice["measured_at_once"])
assert all("+" not in name for name in advice["tried"] + advice["measured_again"]), advice["tried"]
names = {each["name"]: each["setting"] for each in advice["advice"]}
assert {"sluice:" + each for each in both} <= set(names), names
assert (at_once in names) == (sys.argv[2] == "yes"), names
assert names.get(at_once, "").count("SLUICE_") == (len(at_once.split("+")) if at_once in names else 0), names
P
}
cc -DEITHER=0 -o both options.c || fail 'no program'
cc -DEITHER=1 -o either options.c || fail 'no program'
advise_both both yes
advise_both either no

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
