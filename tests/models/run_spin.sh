#!/usr/bin/env bash
# Runs a model in Promela: as it is, which must hold, and once with each macro that it names as WEAKER, which spin must
# reject. Open it to change how models in Promela are run; the others are programs.
set -euo pipefail

model=${1:?Usage: run_spin.sh MODEL.pml}
command -v spin >/dev/null || { echo "skipped: no spin here (Debian: spin)" && exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$model" "$folder/model.pml"
cd "$folder"

# check [MACRO]: sets `errors` to what spin finds.
check() {
  local step
  for step in "spin ${1:+-D$1} -a model.pml" "${CC:-cc} -DSAFETY -DVECTORSZ=2048 -o pan pan.c" "./pan -m100000"; do
    $step >log.txt 2>&1 || { cat log.txt && exit 1; }
  done
  errors=$(sed -n 's/.*errors: \([0-9]*\)$/\1/p' log.txt)
  [[ -n $errors ]] && ! grep -q 'max search depth too small' log.txt || { cat log.txt && exit 1; }
}

failed=0
check
if ((errors == 0)); then
  echo "holds: as it is ($(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' log.txt) states)"
else
  echo "WRONG: as it is"
  spin -t -p model.pml
  failed=1
fi
while IFS=: read -r macro what; do
  check "$macro"
  if ((errors == 0)); then
    echo "NOT REJECTED:$what ($macro)"
    failed=1
  else
    echo "rejected:$what"
  fi
done < <(sed -n 's|^// WEAKER ||p' model.pml)
exit "$failed"
