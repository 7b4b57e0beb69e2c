#!/usr/bin/env bash
# Runs a program on libsluice.so where the system commits no more memory than it has (vm.overcommit_memory=2), and puts
# the setting back. Open it when a program does not start on such a system. It changes the whole machine for some seconds,
# though with a ratio so large that no other program is refused anything: as root, by hand, on a machine of one's own.
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
echo 2 >"$settings/overcommit_memory"

# The heap reserves far more than it commits: only what is committed may count.
committed() { awk '/^Committed_AS/ { print $2 }' /proc/meminfo; }
LD_PRELOAD=$library timeout 30 "$program" use 64
before=$(committed)
LD_PRELOAD=$library timeout 30 sleep 0.5 &
sleep 0.2
after=$(committed)
wait $!
if ((after > before + 1024 * 1024)); then
  echo "overcommit.sh: a program that does nothing is charged $((after - before)) KiB" >&2
  exit 1
fi
echo "overcommit.sh: a program that does nothing is charged $((after - before)) KiB"
