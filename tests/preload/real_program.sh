#!/usr/bin/env bash
# Runs a real program's workload (real_workloads.sh) three times: on the system's malloc, under libsluice.so, and under
# libsluice.so with its statistics on. Output, exit status and the files left behind must be the same, and the statistics
# prove that the program really ran on sluice. Open it when a real program fails under the preload.
#
# Usage: real_program.sh NAME LIBSLUICE [VARIABLE=VALUE...]
# The variables, such as SLUICE_PURGE_DELAY=0, are set for the runs on libsluice.so.
# Ends with status 0, 1 (something differs), 2 (usage) or 77 (the program is not installed).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
if [ $# -lt 2 ] || [ ! -f "${2:-}" ]; then
  echo "usage: real_program.sh NAME LIBSLUICE [VARIABLE=VALUE...]" >&2
  exit 2
fi
name=$1
library=$(realpath "$2")
variables=("${@:3}")

export LC_ALL=C TZ=UTC PATH="/usr/bin:/bin:/usr/sbin:/sbin:$PATH"
unset LD_PRELOAD "${!SLUICE_@}" "${!GIT_@}"
source "$here/real_workloads.sh"
if ! declare -F "workload_$name" > /dev/null; then
  echo "real_program.sh: no workload is named '$name'" >&2
  exit 2
fi
for program in $("programs_$name"); do
  if ! command -v "$program" > /dev/null; then
    echo "skipped: $program is not installed"
    exit 77
  fi
done

if declare -F "missing_$name" > /dev/null && missing=$("missing_$name") && [ -n "$missing" ]; then
  echo "skipped: $missing is not installed"
  exit 77
fi

temporary=$(mktemp -d)
# A server that ends late may write its statistics while they are removed.
clean_up() {
  local try
  for try in 1 2 3 4 5; do
    rm -rf "$temporary" 2> /dev/null && return
    sleep "$try"
  done
}
trap clean_up EXIT

# The prepared input is the same for all runs; each run has a folder of its own under one and the same path.
export INPUT="$temporary/input" WORK="$temporary/work"
mkdir "$INPUT"
if declare -F "prepare_$name" > /dev/null; then
  (cd "$INPUT" && "prepare_$name") > "$temporary/prepare.log" 2>&1 || {
    echo "real_program.sh: the input of $name could not be prepared:"
    cat "$temporary/prepare.log"
    exit 1
  }
fi

# run LABEL [VARIABLE=VALUE...]: leaves LABEL.out, LABEL.err, LABEL.status and LABEL.files.
run() {
  local label=$1 status=0
  shift
  mkdir "$WORK"
  (cd "$WORK" && exec env "$@" bash "$here/real_workloads.sh" "$name") \
    > "$temporary/$label.out" 2> "$temporary/$label.err" < /dev/null || status=$?
  echo "$status" > "$temporary/$label.status"
  (cd "$WORK" && find . -path ./unchecked -prune -o -type f -print0 | sort -z | xargs -0 -r sha256sum) \
    > "$temporary/$label.files"
  rm -rf "$WORK"
}

failed=0
compare() {
  local what
  for what in status out err files; do
    if ! diff -u "$temporary/system.$what" "$temporary/$1.$what" > "$temporary/difference"; then
      echo "$name: $what under sluice ($1) differs from the run on the system's malloc:"
      head -n 40 "$temporary/difference"
      failed=1
    fi
  done
}

# Where the workload does not work without sluice, nothing can be said of sluice; a machine that was short of something for
# a moment gets another chance, and a workload that never works fails the test.
for attempt in 1 2 3; do
  run system
  if [ "$(cat "$temporary/system.status")" = 0 ]; then break; fi
  echo "$name: the workload fails on the system's malloc, at attempt $attempt:"
  cat "$temporary/system.out" "$temporary/system.err"
  if [ "$attempt" = 3 ]; then exit 1; fi
  sleep "$attempt"
done
run preload "${variables[@]}" LD_PRELOAD="$library"
compare preload
mkdir "$temporary/dumps"
run counted "${variables[@]}" LD_PRELOAD="$library" SLUICE_STATS="json:$temporary/dumps/%p.json"
compare counted
seen=programs_$name
if declare -F "seen_$name" > /dev/null; then seen=seen_$name; fi
for program in $("$seen"); do
  real=$(basename "$(readlink -f "$(command -v "$program" || echo "$program")")")
  # A server may add to its name what it does.
  if ! grep -rqsE "\"program\": \"(${program//+/[+]}|${real//+/[+]})[\":]" "$temporary/dumps"; then
    echo "$name: no statistics name $program: it did not run on sluice"
    failed=1
  fi
done
[ "$failed" = 0 ] && echo "$name: same output in $(wc -l < "$temporary/system.out") lines, on sluice in" \
  "$(find "$temporary/dumps" -type f | wc -l) processes"
exit "$failed"
