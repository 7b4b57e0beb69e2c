# The preset aarch64: both libraries and their tests by Debian's cross compiler, executed by qemu-user. Sourced by scripts/port.
#
# All unit, stress, fuzz and preload programs of the preset run, without what stands here. The emulator's own limits are (7.2):
# - the child of a fork that starts a thread, where the program had another one, ends by an assertion of the emulator's;
# - mremap with MREMAP_DONTUNMAP forgets the range that it leaves (tests/ports/no_moves.c);
# - mincore takes pages that may not be read for unmapped ones;
# - it keeps 280 KiB of each thread that has ended, and the process's resident memory is the emulator's;
# - it notes each page of a mapping: reservations of terabytes, again and again, take it minutes and gigabytes;
# - seccomp is refused, a program started by exec is one of this machine, and signal masks in /proc are the emulator's.
source "$repo_root/scripts/lib/ports/side_by_side.sh"

sysroot=/usr/aarch64-linux-gnu

programs_left_out=(
  hardened_random_secure_test                                             # seccomp
  heap_every_call_fault_test region_gap{,_secure}_fault_test              # reservations
  recycle_fault_test                                                      # moves pages
  known_stacks_test                                                       # has no test on aarch64
  sandbox_test                                                            # seccomp
  address_space_test                                                      # limits the emulator's own memory
)

cases_left_out=(
  # Threads in a child.
  Background.a_child_of_a_fork_has_none_and_can_start_one
  HardenedApart.AForkThatStopsAThreadInItsQueueGivesNoBlockToTwo
  OwnSpansTest.a_child_of_a_fork_gives_back_what_a_thread_kept_that_stayed_behind
  ArenaStress.children_of_a_busy_program_have_whole_arenas
  Fork.ChildMayStartThreadsAndForkAgain
  ScopeEscape.ToTheChildOfAForkWhileOtherThreadsHaveScopes
  OwnThread.AChildHasNoneUntilItMakesASecondThread
  Vfork.ItsChildMayAllocateWhileOtherThreadsDo  # hangs there
  # Pages that may not be read.
  ForkFault.a_child_finds_room_beside_what_was_reserved_and_not_noted
  Hardened.ALargeBlockThatShrinksALittleGivesBackItsPages
  # Pages that move.
  HeapFault.a_block_whose_mapping_is_lost_when_it_ends_is_not_used_before_it_has_one_again
  HeapFault.a_block_that_loses_the_mapping_of_its_end_when_it_shrinks_stays_whole
  Recycle.a_block_that_fits_no_free_span_takes_their_pages:Recycle.blocks_of_which_the_front_is_written_find_their_pages
  # Resident memory.
  Hostile.memory_of_threads_that_have_ended_goes_back
  FrameThread.MemoryGoesBackWithTheThreadAlsoWithoutARewind:FrameThread.ManyAtATimeGiveTheirsBack
  ThreadExit.ShortThreadsLeaveNothingBehind:ManyThreads.AtOnceHoldLittle
  MemoryReturns.FromThreadsThatSleep:WhatWasAskedOfPages.HugePagesAreForItsBlockAlone
  # Reservations.
  RegionFault.a_start_without_address_space_is_tried_again_and_leaks_none
  HeapFault.the_first_call_of_a_program_may_find_no_memory
  Hostile.the_heap_grows_past_huge_mappings_and_forks_go_on
  # Seccomp, exec and masks.
  OwnThread.IsDoneWithoutWhereNoThreadCanBeMade:OwnThread.LivesInASandboxThatComesWithTheSecondThread
  OwnThread.IsSwitchedOffByAnOption:OwnThread.TakesNoSignalOfTheProgram
)
# What the secure library answers in another way: a delete of the wrong size is reported.
cases_of_plain_library=(SizedDelete.* SizedFree.*)

# On pages of 16 and 64 KiB, pretended by tests/pages.
unit_on_larger_pages=(region vacant thread_cache)
preload_on_larger_pages=(contract aligned usable_size)

# Instructions to the return of what programs call most, as gcc 12 compiles it; more of them fail the test.
fast_paths=(malloc=20 free=23 _Znwm=23 _ZdlPv=23 _ZdlPvm=23)

build_port() {
  command -v aarch64-linux-gnu-g++ >/dev/null || fail "no cross compiler (Debian: g++-aarch64-linux-gnu)"
  command -v qemu-aarch64 >/dev/null || install_qemu
  configure aarch64 -DSLUICE_TESTS=ON
  build aarch64 sluice_preload sluice_secure_preload sluice_static larger_pages unit_tests stress_tests fuzz_tests preload_tests
  aarch64-linux-gnu-gcc -shared -fPIC -O1 -Wall -Wextra "$repo_root/tests/ports/no_moves.c" -o "$build/no_moves.so" || fail "no_moves.c could not be compiled"
  built=$repo_root/build/aarch64/lib/libsluice.so
}

install_qemu() {
  local as_root=()
  ((EUID == 0)) || as_root=(sudo)
  say "installing qemu-user"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends qemu-user </dev/null ||
    fail "qemu-user could not be installed"
}

# Writes a line for each run: its name, and the emulator's arguments. What is preloaded goes by an option of the emulator: in the
# environment it would be preloaded to the emulator, too. Names have no blanks.
runs() {
  local tests=$repo_root/build/aarch64/bin/tests libraries=$repo_root/build/aarch64/lib
  local program name library bytes
  for program in "$tests"/*_{test,stress,fuzz}; do
    name=${program##*/}
    [[ " ${programs_left_out[*]} " == *" $name "* ]] && continue
    if [[ ! -f $repo_root/tests/preload/$name.cpp ]]; then
      echo "$name -E LD_PRELOAD=$build/no_moves.so $program"
      [[ $name != *_fuzz ]] || echo "$name.corpus -E LD_PRELOAD=$build/no_moves.so $program $repo_root/tests/fuzz/corpus/${name%_fuzz}"
      continue
    fi
    preload_runs -E "$libraries" "$program"
  done
  for bytes in 16384 65536; do
    for name in "${unit_on_larger_pages[@]/%/_test}"; do
      echo "$name.pages-$bytes -E LARGER_PAGES=$bytes -E LD_PRELOAD=$tests/larger_pages.so $tests/$name"
    done
    for library in libsluice libsluice-secure; do
      for name in "${preload_on_larger_pages[@]/%/_test}"; do
        echo "$name.$library.pages-$bytes -E LARGER_PAGES=$bytes -E LD_PRELOAD=$tests/larger_pages.so:$libraries/$library.so $tests/$name"
      done
    done
  done
}

# execute NAME EMULATOR'S ARGUMENT...: what the tests of the program say goes to NAME's log, and is shown where they fail.
execute() {
  local name=$1 status=0 begin=$SECONDS
  local log=$build/$name.log filter
  shift
  filter=$(IFS=: && echo "-${cases_left_out[*]}")
  [[ $name != *libsluice-secure* ]] || filter+=:$(IFS=: && echo "${cases_of_plain_library[*]}")
  timeout 300 qemu-aarch64 -L "$sysroot" -E GTEST_FILTER="$filter" -E STRESS_PERCENT=25 "$@" >"$log" 2>&1 || status=$?
  ((status == 0)) && say "$name passed in $((SECONDS - begin)) s" && return
  say "$name failed with status $status"
  tail -20 "$log"
  return 1
}

# What holds of the files, whatever runs.
look_at_files() {
  local library symbols
  for library in libsluice libsluice-secure; do
    symbols=$(aarch64-linux-gnu-nm "$repo_root/build/aarch64/lib/$library.so")
    [[ $symbols == *' t __aarch64_ldadd'* ]] ||
      fail "$library.so has loops for atomic updates, also on processors that have instructions for them"
  done
  python3 -B "$repo_root/tests/preload/golden_fast_path.py" "$repo_root/build/aarch64/lib/libsluice.so" "${fast_paths[@]}" \
    >"$build/fast_paths.log" || { cat "$build/fast_paths.log" && fail "the fast paths are longer than they were"; }
}

test_port() {
  look_at_files
  execute_all
  where="executed by qemu-user, not on such a machine; larger pages pretended"
}
