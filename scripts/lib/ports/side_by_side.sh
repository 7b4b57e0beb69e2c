# Runs the programs of a port's tests, several at a time. Sourced by the ports that have many.

# execute_all: `execute NAME ARGUMENT...` for each line that `runs` writes, as many side by side as there are jobs.
execute_all() {
  local name arguments lines count=0 failed=0
  lines=$(runs) && [[ -n $lines ]] || fail "there is nothing to run"
  while read -r name arguments; do
    while ((count >= jobs)); do
      wait -n || failed=1
      count=$((count - 1))
    done
    # shellcheck disable=SC2086 # no word has a blank
    execute "$name" $arguments </dev/null &
    count=$((count + 1))
  done <<<"$lines"
  while ((count > 0)); do
    wait -n || failed=1
    count=$((count - 1))
  done
  ((failed == 0)) || fail "tests failed"
}
