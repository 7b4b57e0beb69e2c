#!/usr/bin/env bash
# Runs a program on libsluice.so where the system guesses what it may commit (vm.overcommit_memory=0), commits without bounds (1)
# and commits no more memory than it has (2), and puts the setting back. Open it when a program does not start on such a
# system. It changes the whole machine for some seconds, though with a ratio so large that no other program is refused
# anything: as root, by hand, on a machine of one's own. scripts/port linux-kernels has one for it.
#
# Usage: overcommit.sh --change-this-machine LIBSLUICE LIMITED      ends with status 77 without the flag or the right to
set -euo pipefail

settings=/proc/sys/vm
if [[ ${1-} != --change-this-machine || ! -w $settings/overcommit_memory ]]; then
  echo "overcommit.sh: skipped: it would change a setting of this machine; see its first lines" >&2
  exit 77
fi
library=$2 program=$3

memory=$(<"$settings/overcommit_memory")
ratio=$(<"$settings/overcommit_ratio")
kilobytes=$(<"$settings/overcommit_kbytes")
restore() {
  echo "$memory" >"$settings/overcommit_memory"
  # Writing either of these sets the other to 0.
  if ((kilobytes != 0)); then
    echo "$kilobytes" >"$settings/overcommit_kbytes"
  else
    echo "$ratio" >"$settings/overcommit_ratio"
  fi
}
trap restore EXIT
trap 'exit 1' INT TERM HUP
echo 10000000 >"$settings/overcommit_ratio"

fail() {
  echo "overcommit.sh: FAILED: $*" >&2
  exit 1
}
committed() { awk '/^Committed_AS/ { print $2 }' /proc/meminfo; }
twice=$(awk '/^(MemTotal|SwapTotal)/ { sum += $2 } END { printf "%d", sum / 512 }' /proc/meminfo)
for mode in 0 1 2; do
  echo "$mode" >"$settings/overcommit_memory"
  LD_PRELOAD=$library timeout 120 "$program" use 64 >/dev/null || fail "mode $mode: a program that uses 64 MiB"
  # Refused is what the machine does not promise: with the ratio above it promises all in mode 2, too.
  answer=$(LD_PRELOAD=$library timeout 30 "$program" ask "$twice") || fail "mode $mode: a program that asks for twice the memory"
  [[ $mode,$answer == @(0,refused|1,granted|2,granted) ]] || fail "mode $mode: twice the memory is $answer"
  # The heap reserves far more than it commits: only what is committed may count.
  before=$(committed)
  LD_PRELOAD=$library timeout 30 sleep 0.5 &
  sleep 0.2
  after=$(committed)
  wait $!
  ((after <= before + 1024 * 1024)) || fail "mode $mode: a program that does nothing is charged $((after - before)) KiB"
  echo "overcommit.sh: mode $mode: 64 MiB are used, twice the memory is $answer, a program that does nothing is charged $((after - before)) KiB"
done
