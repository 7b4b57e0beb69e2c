#!/usr/bin/env bash
# What the workflow runs on systems other than Debian 12: here, from the archive of sources, without the command.
source "$(dirname "$0")/testing.sh"
unpack_sources
timeout 1800 "$sources/tests/package/smoke_test.sh" -DSLUICE_COMMAND=OFF -DSLUICE_SCENARIOS=OFF >"$workspace/log" 2>&1 ||
  { tail -n 20 "$workspace/log" && fail smoke_test.sh; }
says 'smoke_test.sh: passed' tail -n 1 "$workspace/log"
echo "$0: passed"
