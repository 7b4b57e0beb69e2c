#!/usr/bin/env bash
# `--html`: the page that the command writes, and pages of other documents, as a browser shows them.
. "$(dirname "$0")/testing.sh"

hostile='</script><img src="x" onerror="fail()"> |"é'
run "$SLUICE" compare --runs 1 --warmup 0 --with system --html page.html -- sh -c ': "$1"' sh "$hostile"
expect_status 0
[ -s page.html ] || fail 'no page was written'

# Nothing in it begins an element that the page does not have, and all of Chart.js' licence is there.
[ "$(grep -c '<img' page.html)" -eq 0 ] || fail "an argument of the program became markup"
if grep -q 'Chart.js v' page.html; then
  grep -q 'Released under the MIT License' page.html || fail 'the licence of Chart.js is missing'
fi

run python3 -B "$fixtures/html_report.py" page.html "$hostile"
[ "$status" -ne 77 ] || skip "$output"
expect_status 0
finish
