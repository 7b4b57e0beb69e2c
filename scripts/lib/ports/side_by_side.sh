# Runs the programs of a port's tests, several at a time. Sourced by the ports that have many.

# preload_runs FLAG FOLDER PROGRAM: the lines of `runs` for a program of the preload tests, on both libraries of the folder. FLAG
# stands before each variable.
preload_runs() {
  local flag=$1 folder=$2 program=$3 name=${3##*/} options=''
  case $name in  # as in tests/preload/CMakeLists.txt
    hostile_test) options="$flag SLUICE_RETAIN=16M" ;;
    memory_return_test) options="$flag SLUICE_PURGE_DELAY=0" ;;
    own_thread_test) options="$flag SLUICE_PURGE_DELAY=20 $flag SLUICE_BACKGROUND=1" ;;
  esac
  echo "$name.libsluice $flag LD_PRELOAD=$folder/libsluice.so $options $program"
  # On the secure library scopes place nothing; the rest there is the same code.
  [[ $name == @(scope*|names|fiber|children|small_stack)_test ]] && return
  [[ $name == foreign_test ]] && options="$flag SLUICE_ABORT_ON_CORRUPTION=0"  # it must go on
  echo "$name.libsluice-secure $flag LD_PRELOAD=$folder/libsluice-secure.so $options $program"
}

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
