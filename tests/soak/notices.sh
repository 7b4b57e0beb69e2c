#!/usr/bin/env bash
# Shows that the soak programs notice what they are there to notice: each runs on a malloc that does one thing wrong, and
# has to fail for that reason. Open it when a program has learnt to look for something else.
set -euo pipefail

folder=${1:?the folder of the soak programs}
libsluice=${2:?libsluice.so}
output=$(mktemp)
trap 'rm -f "$output"' EXIT
failed=0

# notices PROGRAM FAULT EXPECTED [ARGUMENTS...]: EXPECTED is an extended regular expression of what the program says.
notices() {
  local program=$1 fault=$2 expected=$3 status=0
  shift 3
  # In a subshell, so that its shell says nothing of an abort.
  (SOAK_FAULT=$fault LD_PRELOAD="$folder/soak_faulty.so $libsluice" \
    "$folder/soak_$program" --limit 2 "$@"; exit $?) >"$output" 2>&1 || status=$?
  printf 'ended with %s\n' "$status" >>"$output"
  if ((status != 0)) && grep -qE "$expected" "$output"; then return; fi
  printf 'soak_%s does not notice "%s"; it said:\n' "$program" "$fault"
  tail -n 5 "$output"
  failed=1
}

lost='lost its contents|lost contents'
notices calls damage "$lost" --rounds 20
notices calls twice "$lost|ended with 1.." --rounds 20  # or it crashes
notices calls hang HANGS --rounds 20
notices threads leak 'threads later' --rounds 1000
notices queues leak 'in memory|stay' --rounds 20
notices queues damage "$lost" --rounds 20
notices phases leak 'has ended' --rounds 20
notices forks child 'a child hung' --rounds 3000
notices forks damage "$lost" --rounds 3000
notices signals damage "$lost" --rounds 50
notices scopes damage "$lost|frame: a" --rounds 50
exit "$failed"
