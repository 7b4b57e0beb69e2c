#!/usr/bin/env bash
# Whether threads get memory of the memory node (NUMA) that they run on: in a machine with two nodes that scripts/port linux-kernels
# has started. Open it when they do not. nodes_guest.sh FOLDER: the libraries and programs
set -euo pipefail
folder=$1
failures=0
failed() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
[[ -d /sys/devices/system/node/node1 ]] || failed "there is one node"
echo "kernel $(uname -r), nodes $(cat /sys/devices/system/node/online)"

for pattern in turns ended handed; do
  echo "$pattern | glibc | $("$folder/nodes" "$pattern")"
  for name in libsluice libsluice-secure; do
    read -r far _ all _ < <(SLUICE_NUMA=off LD_PRELOAD=$folder/$name.so "$folder/nodes" "$pattern")
    echo "$pattern | $name, NUMA off | $far of $all"
    # Else the program shows nothing.
    ((far * 5 > ${all%,})) || failed "$pattern: $name without nodes has little on the other one"
    read -r far _ all _ < <(LD_PRELOAD=$folder/$name.so "$folder/nodes" "$pattern")
    echo "$pattern | $name | $far of $all"
    # Freed blocks wait with the thread that freed them in the secure library, and serve that.
    most=$([[ $name == *secure ]] && echo 10 || echo 2)
    ((far * 100 <= ${all%,} * most)) || failed "$pattern: $name has more than $most % on the other node"
  done
done
SLUICE_STATS=1 LD_PRELOAD=$folder/libsluice.so "$folder/nodes" turns 2>&1 >/dev/null | grep -q ' 2 memory nodes, ' || failed "the statistics do not tell of two nodes"
((failures == 0)) || exit 1
echo "nodes_guest.sh: passed"
