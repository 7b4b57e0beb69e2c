#!/usr/bin/env bash
# What is settled for a whole machine, in a machine of one's own that scripts/port linux-kernels has started: vm.overcommit_memory, huge
# pages, a control group of version 2. Run there as root; open it when a kernel or such a setting breaks Sluice.
# kernels_guest.sh FOLDER: the libraries, programs and scripts
set -euo pipefail
folder=$1
libraries=("$folder"/libsluice{,-secure}.so)
failures=0
failed() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
echo "kernel $(uname -r), $(($(nproc))) processors, $(awk '/^MemTotal/ { print int($2 / 1024) }' /proc/meminfo) MiB"

for library in "${libraries[@]}"; do
  name=$(basename "$library" .so)
  bash "$folder/overcommit.sh" --change-this-machine "$library" "$folder/limited" | sed "s/^overcommit.sh/$name/" || failed "$name: overcommit.sh"

  # With the usual ratio: half of the memory is promised, and no more.
  echo 2 >/proc/sys/vm/overcommit_memory
  LD_PRELOAD=$library "$folder/limited" use 64 >/dev/null || failed "$name: a program where little is promised"
  [[ $(LD_PRELOAD=$library "$folder/limited" ask 1500) == refused ]] || failed "$name: more is granted than is promised"
  echo 0 >/proc/sys/vm/overcommit_memory
  echo "$name: mode 2, half of the memory: 64 MiB are used, 1500 MiB are refused"
done
# Skipped, it would have no control group, which this machine is for. The secure library keeps more than half of such a container.
PYTHONPATH=$folder python3 -B -c "
import unittest, limits_test, preload_process
preload_process.paths.update(libsluice='${libraries[0]}', limited='$folder/limited')
unittest.main(limits_test, argv=['', 'Container'])" >/tmp/log 2>&1 && ! grep -q skipped /tmp/log || { cat /tmp/log && failed "limits_test.py"; }
echo "libsluice: a container of 64 MiB, by memory.max of $(stat -fc %T /sys/fs/cgroup): $(tail -1 /tmp/log)"

setting=/sys/kernel/mm/transparent_hugepage/enabled
row() { # NAME MEBIBYTES VARIABLE...: what the program takes; the least of three peaks
  local name=$1 megabytes=$2 run
  shift 2
  read -r peak huge after < <(for run in 1 2 3; do env "$@" "$folder/huge_pages" "$megabytes"; done | sort -n | head -1)
  echo "$mode | $megabytes MiB | $name | peak $peak KiB | huge $huge KiB | after $after KiB"
}
for mode in never madvise always; do
  echo "$mode" >"$setting"
  for megabytes in 4 64; do
    row glibc "$megabytes" A=1
    system=$peak
    for library in "${libraries[@]}"; do
      name=$(basename "$library" .so)
      row "$name" "$megabytes" LD_PRELOAD="$library"
      [[ $mode == always || $huge == 0 ]] || failed "$mode: $name takes huge pages that it did not ask for"
      # The heap must not fill several huge pages with what nobody uses, nor keep them.
      ((peak <= system + 8192 + megabytes * 128)) || failed "$mode: $name takes $peak KiB, glibc $system"
      ((after <= 8192 + megabytes * 128)) || failed "$mode: $name keeps $after KiB"
      row "$name, HUGE_PAGES" "$megabytes" LD_PRELOAD="$library" SLUICE_HUGE_PAGES=on
      [[ $mode != never || $huge == 0 ]] || failed "never: huge pages all the same"
      # A heap of a few MiB may have no place for one, and the secure library has guard pages in between.
      [[ $mode == never || $megabytes == 4 || $name == *secure || $huge != 0 ]] || failed "$mode: no huge pages though asked for"
    done
  done
done
# Where the system makes huge pages of what it can: the contract, all the same.
for library in "${libraries[@]}"; do
  LD_PRELOAD=$library "$folder/contract_test" >/tmp/log 2>&1 || { tail -20 /tmp/log && failed "contract_test on $(basename "$library")"; }
done
((failures == 0)) || exit 1
echo "kernels_guest.sh: passed"
