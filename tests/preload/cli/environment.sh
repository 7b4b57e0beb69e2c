#!/usr/bin/env bash
# The environment that a program gets: LD_PRELOAD and SLUICE_* variables.
. "$(dirname "$0")/testing.sh"

preloads() { run env ${1+LD_PRELOAD="$1"} "$SLUICE" run -- printenv LD_PRELOAD; }
preloads
expect_status 0
library=$output
[ -f "$library" ] || fail "LD_PRELOAD is '$library', which is no file"
case "$library" in
  /*/libsluice.so) ;;
  *) fail "LD_PRELOAD is '$library', not an absolute path of libsluice.so" ;;
esac

other=/nonexistent/other.so
preloads "$other"
expect_output "$library:$other"
preloads "$other /nonexistent/third.so"
expect_output "$library:$other /nonexistent/third.so"
preloads ''
expect_output "$library"
run "$SLUICE" run -- "$SLUICE" run -- printenv LD_PRELOAD
expect_output "$library"

run "$SLUICE" run --option purge-delay=5 -o CACHE=16K --option sluice_huge_pages=On -- env
expect_status 0
expect_in output SLUICE_PURGE_DELAY=5
expect_in output SLUICE_CACHE=16K
expect_in output SLUICE_HUGE_PAGES=On
run env SLUICE_CACHE=1K "$SLUICE" run --option cache=2K --option cache=3K -- printenv SLUICE_CACHE
expect_output 3K
run env SLUICE_CACHE=1K "$SLUICE" run -- printenv SLUICE_CACHE
expect_output 1K

stats() { run "$SLUICE" run "$@" -- printenv SLUICE_STATS; }
stats --stats
expect_output text
stats --stats=json
expect_output json
stats --stats=json:out.%p.json
expect_output "json:$workspace/out.%p.json"
stats --stats=text:/somewhere/out
expect_output text:/somewhere/out
stats --option stats=json:out
expect_output "json:$workspace/out"
stats
expect_status 1
finish
