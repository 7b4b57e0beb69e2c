#!/usr/bin/env bash
# Nobody is called the best where nothing differs: no summary that names one, no green. The figures here are made up, so
# that no verdict depends on time.
. "$(dirname "$0")/testing.sh"
python=$(python3 -c 'import sys; print(sys.executable)') || skip 'no python3'
# on_terminal COMMAND...: runs it on a terminal, so that it may use colours.
on_terminal() { run env -u NO_COLOR TERM=xterm "$python" -c 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' "$@"; }
green=$'\033[32m'

cat >program <<'END'
case $LD_PRELOAD in *libsluice.so*) n=0 ;; *libmimalloc*) n=1 ;; *) n=2 ;; esac
echo "speed: $(echo "$RATES" | cut -d ' ' -f $((n + 1))) per second"
END
library=$("$SLUICE" run -- sh -c 'echo "$LD_PRELOAD"')
cp "$library" libmimalloc-not.so
# rates A B C: the comparison of sluice, another and the system with these rates.
rates() {
  RATES="$1 $2 $3" on_terminal "$SLUICE" compare --runs 5 --warmup 0 --with "sluice,other=$PWD/libmimalloc-not.so,system" \
    --ignore-output --metric 'speed: ([0-9]+)' -- sh program
  expect_status 0
}
rates 1000 1000 1000
expect_in output 'No significant difference in speed between sluice, other and system.'
grep -F "$green" <<<"$output" | grep -q speed && fail "green where nothing differs: $output"
case "$output" in *'Best by'* | *'speed: sluice,'*) fail "somebody is named: $output" ;; esac
expect_in output 'Which allocator?'
rates 1001 1000 1000
expect_in output 'No significant difference in speed between sluice, other and system.'
rates 1000 1000 500
expect_in output "${green}Best by speed: sluice and other, without a significant difference, then system."
rates 500 700 1000
expect_in output "${green}Best by speed: system, then other, then sluice."
case "$output" in
  *'Which allocator? It depends: system for speed (against sluice: 2.0 times higher'* | \
  *'Which allocator? system: nobody beats it here; against sluice: 2.0 times higher'*) ;;
  *) fail "no answer that follows from the figures: $output" ;;
esac

# The same of scenarios: scripts that say how long they took, in an installation made for the test.
root=$workspace/root
scenarios=$root/lib/sluice/scenarios
mkdir -p "$root/bin" "$scenarios"
cp "$SLUICE" "$root/bin/sluice"
cp "$library" "$root/lib/"
cp "$(dirname "$library")"/sluice/*sluice* "$root/lib/sluice/" 2>/dev/null
# times A B: `pair` takes as long under sluice and under the system's malloc.
times() {
  printf '#!/bin/sh\ncase $LD_PRELOAD in *libsluice.so*) t=%s ;; *) t=%s ;; esac\n%s\n' "$1" "$2" \
    'echo "{\"scenario\":\"pair\",\"ops\":10,\"cases\":[{\"name\":\"pair\",\"ops\":10,\"ns_per_op\":$t}],\"peak_rss_kib\":1000}"' \
    >"$scenarios/pair"
  chmod +x "$scenarios/pair"
  on_terminal "$root/bin/sluice" bench run pair --with system,sluice --rounds "${3:-5}" --quiesce 0 --no-latency
  expect_status 0
}
times 2.5 2.5
expect_in output '2.50 (1.00)'
case "$output" in *"$green"*) fail "green in a scenario where nothing differs: $output" ;; esac
times 2.5 2.504
case "$output" in *"$green"*) fail "green for a difference too small to speak of: $output" ;; esac
times 2.5 5
expect_in output "${green}2.50 (0.50)"
[ "$(grep -o -F "$green" <<<"$output" | wc -l)" -eq 1 ] || fail "green for more than the one that is better: $output"
times 2.5 5 4
case "$output" in *"$green"*) fail "green after too few rounds to tell: $output" ;; esac
finish
