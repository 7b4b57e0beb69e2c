#!/usr/bin/env bash
# `sluice profile --html`: the page as a browser shows it.
. "$(dirname "$0")/testing.sh"
command -v python3 >/dev/null || skip 'no python3'
run python3 -B "$fixtures/profile_html.py" "$SLUICE"
[ "$status" -ne 77 ] || skip "$output"
expect_status 0
finish
