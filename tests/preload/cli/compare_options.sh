#!/usr/bin/env bash
# `--with NAME:OPTION=VALUE+…` measures Sluice with options of its own, and refuses before anything runs what it does not
# take.
. "$(dirname "$0")/testing.sh"

library=$("$SLUICE" run -- printenv LD_PRELOAD)
# Prints what reached it; a difference between allocators is an error, so that the output is ignored.
cat >show <<'P'
#!/bin/sh
echo "$SLUICE_CACHE $SLUICE_PURGE_DELAY" >>seen
P
chmod +x show
export SLUICE_CACHE=1M
run "$SLUICE" compare --runs 1 --warmup 0 --json result.json --markdown result.md --html result.html \
  --with "sluice,sluice:cache=256K+purge-delay=100,before=$library:SLUICE_CACHE=64K" \
  --baseline sluice:CACHE=256K+PURGE_DELAY=100 -- ./show
unset SLUICE_CACHE
expect_status 0
[ "$(sort seen)" = $'1M \n256K 100\n64K ' ] || fail "the programs saw $(cat seen)"
expect_in output 'sluice:CACHE=256K+PURGE_DELAY=100'
expect_in output 'before:CACHE=64K'
grep -q 'before:CACHE=64K' result.md || fail 'Markdown does not name the options'
grep -q 'before:CACHE=64K' result.html || fail 'HTML does not name the options'
python3 - <<'P' || fail 'JSON does not tell the options'
import json
result = json.load(open("result.json"))
assert result["baseline"] == "sluice:CACHE=256K+PURGE_DELAY=100", result["baseline"]
found = {each["name"]: each.get("environment") for each in result["allocators"]}
assert found == {"sluice": None, "sluice:CACHE=256K+PURGE_DELAY=100": {"SLUICE_CACHE": "256K", "SLUICE_PURGE_DELAY": "100"},
                 "before:CACHE=64K": {"SLUICE_CACHE": "64K"}}, found
P

rm seen
refuse() { # SPECIFICATION TEXT
  run "$SLUICE" compare --with "$1" -- ./show
  expect_one_line_error 2 "$2"
}
refuse sluice:CACHES=256K "did you mean 'CACHE'"
refuse sluice:CACHE=much 'bad value'
refuse sluice:CACHE 'expected OPTION=VALUE'
refuse sluice: 'expected OPTION=VALUE'
refuse sluice:CACHE=1M+ 'expected OPTION=VALUE'
refuse sluice:CACHE=1M+CACHE=64K 'twice'
refuse system:CACHE=1M 'only sluice, secure and NAME=PATH take options'
refuse sluice:CACHE=1M,sluice:cache=1M 'twice'
refuse slice:CACHE=1M "did you mean 'sluice'"
refuse "x=/nonexistent:CACHE=1M" 'no such file'
run "$SLUICE" compare --with sluice,system --baseline sluice:CACHE=1M -- ./show
expect_one_line_error 2 'unknown allocator for --baseline'
run "$SLUICE" bench run pair --with sluice:HUGE_PAGE=on
expect_one_line_error 2 "bench: --with sluice:HUGE_PAGE=on: unknown option"
[ ! -e seen ] || fail 'a program ran in spite of a bad option'
finish
