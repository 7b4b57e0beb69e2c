#!/usr/bin/env bash
# Runs all workloads of real programs, also those that take minutes, in each of several settings: as it is, memory given
# back at once, little address space. For soak tests; open it to add a setting.
#
# Usage: real_programs_long.sh LIBSLUICE [NAME...]
# Without names: all. A line for each run; ends with status 0, 1 (something failed) or 2 (usage).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
if [ $# -lt 1 ] || [ ! -f "$1" ]; then
  echo "usage: real_programs_long.sh LIBSLUICE [NAME...]" >&2
  exit 2
fi
library=$(realpath "$1")
names=("${@:2}")
if [ ${#names[@]} = 0 ]; then
  mapfile -t names < <(source "$here/real_workloads.sh" && compgen -A function workload_ | sed 's/^workload_//' | sort)
fi

failed=0
# try NAME SETTING [VARIABLE=VALUE...]
try() {
  local status=0 begin=$SECONDS output
  output=$("$here/real_program.sh" "$1" "$library" "${@:3}" 2>&1) || status=$?
  echo "$1, $2, $((SECONDS - begin)) s: $output"
  [ "$status" = 0 ] || [ "$status" = 77 ] || failed=1
}

# In KiB. A virtual machine sets aside much more than it uses, and one of its collectors has no bound.
address_space_for() {
  case $1 in
    java_whole) echo unlimited ;;
    java | node*) echo 8000000 ;;
    *) echo 2000000 ;;
  esac
}

for name in "${names[@]}"; do
  try "$name" "as it is"
  try "$name" "pages back at once" SLUICE_PURGE_DELAY=0 SLUICE_RETAIN=0 SLUICE_CACHE=4K
  limit=$(ulimit -v)
  ulimit -S -v "$(address_space_for "$name")" 2> /dev/null && try "$name" "little address space"
  ulimit -S -v "$limit"
done
exit "$failed"
