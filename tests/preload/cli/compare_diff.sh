#!/usr/bin/env bash
# `sluice compare --diff`: what has changed between two reports, and files that are no reports.
. "$(dirname "$0")/testing.sh"

# report FILE FACTOR: a report as --json writes it, whose times are multiplied.
report() {
  python3 - "$1" "$2" <<'END'
import json, sys
factor = float(sys.argv[2])
def metric(values):
    return {"median": sorted(values)[len(values) // 2], "half_quartile_range": 0, "samples": values}
walls = [1.0, 1.01, 0.99, 1.02, 1.0, 0.98, 1.01, 1.0]
allocators = [{"name": name, "library": "", "failure": None, "wait_status": 0,
               "metrics": {"wall_seconds": metric([wall * (factor if name == "sluice" else 1) for wall in walls]),
                           "peak_rss_kib": metric([5000, 5004, 5000, 4996, 5000, 5000, 5000, 5000])}}
              for name in ("system", "sluice")]
json.dump({"schema": "sluice-compare 1", "command": ["true"], "machine": {"system": "Linux"}, "partial": False,
           "allocators": allocators}, open(sys.argv[1], "w"))
END
}
report old.json 1
report same.json 1
report slower.json 1.2
report faster.json 0.8

run "$SLUICE" compare --diff old.json same.json
expect_status 0
expect_in output 'Nothing is worse than before.'
case "$output" in *slower* | *faster*) fail "a difference between equal reports: $output" ;; esac
run "$SLUICE" compare --diff old.json slower.json
expect_status 1
expect_in output '20.0 % slower'
expect_in output 'Something is worse than before.'
[ "$(grep -c slower <<<"$output")" -eq 1 ] || fail "only sluice is slower: $output"
run "$SLUICE" compare --diff old.json faster.json
expect_status 0
expect_in output '20.0 % faster'

sed 's/\["true"\]/["false"]/; s/"partial": false/"partial": true/' same.json >other.json
run "$SLUICE" compare --diff old.json other.json
expect_status 0
expect_in output 'Note: the commands differ.'
expect_in output 'Note: other.json is partial'

# Reports that the command itself has written.
run "$SLUICE" compare --runs 5 --warmup 0 --with system --json a.json -- true
run "$SLUICE" compare --runs 5 --warmup 0 --with system --json b.json -- true
run "$SLUICE" compare --diff a.json b.json
expect_in output 'peak memory, MiB'

echo '{"schema": "something"}' >wrong.json
echo '{"schema": "sluice-compare 1", "command": []}' >short.json
head -c 100 old.json >cut.json
sed 's/"name": "s/"name": "other-s/g' same.json >others.json
run "$SLUICE" compare --diff old.json wrong.json
expect_one_line_error 2 'wrong.json: not written by'
run "$SLUICE" compare --diff cut.json old.json
expect_one_line_error 2 'cut.json: not written by'
run "$SLUICE" compare --diff old.json short.json
expect_one_line_error 2 'is damaged'
run "$SLUICE" compare --diff old.json missing.json
expect_one_line_error 2 'missing.json: cannot be read'
run "$SLUICE" compare --diff old.json others.json
expect_one_line_error 2 'have no allocator in common'
run "$SLUICE" compare --diff old.json
expect_one_line_error 2 '--diff'
run "$SLUICE" compare --diff old.json same.json -- true
expect_one_line_error 2 'compare: --diff takes two files and no program'
finish
