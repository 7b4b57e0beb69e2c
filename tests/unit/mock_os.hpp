// An operating system whose calls fail when a test says so. Open it to write a fault test: a file NAME_fault_test.cpp
// links mock_os.cpp in place of the real layer. Calls that do not fail go to the real system.
//
//   mock_os::fail_nth(mock_os::Call::Commit, 2);   // the second commit() from now on fails, once
//   mock_os::fail_from(mock_os::any, 5);           // the fifth call of any kind fails, and so does every one after
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mock_os {

enum class Call : uint8_t {
  Reserve,
  Release,  // the range stays mapped where it fails
  Commit,
  MakeReadable,
  Protect,
  Purge,
  Renew,
  MovePages,
  DropLazily,
  AdviseHugePages,
  AdviseSmallPages,
  RegisterThreadExit,
  ArmThreadExit,
  StartThread,
  Count
};

// In place of a kind of call: every kind that can fail.
inline constexpr Call any = Call::Count;

// What was asked of the system. An address of 0 leaves the choice to it.
struct Record {
  Call call;
  uintptr_t address;
  size_t bytes;
  bool failed;
};

// Effects: the n-th call (n >= 1) of the kind from now on fails; with fail_from() all later ones too; with fail_first()
// the next `times`. Replaces what was said before. Thread-safe, as are all functions here.
void fail_nth(Call call, unsigned n);
void fail_from(Call call, unsigned n);
void fail_first(Call call, unsigned times);  // and those that follow work
void never_fail();

// A renewal that fails leaves no mapping behind: the system takes the old one away first.
void unmap_on_failure();

// Effects: arm_thread_exit calls `act` first, as libc may allocate there.
void call_when_arming(void (*act)());

// Effects: the next call of the kind calls `act` first, on the thread that makes it: whatever the heap is in the middle
// of, it is in the middle of it then.
void call_at_next(Call call, void (*act)());

// As _Fork() of libc, which calls no handlers, while no other thread is in the middle of a call here: the child makes
// calls, too.
int fork_without_handlers();

// Whether a call has failed since it was said which ones are to.
bool has_failed();

// What address_space_limit() says; SIZE_MAX at first. Reservations beyond it fail once `bytes` are reserved in all.
void set_address_space_limit(size_t bytes);

// A system without a limit that it tells: single reservations of more bytes than this fail.
void refuse_reservations_above(size_t bytes);

// A system that never reserves at the address that it is asked for.
void refuse_exact_reservations();

// A system with so much memory, which promises no more at once.
void set_all_memory(size_t bytes);

// A system that takes no pages that lie in this range, since the program has locked them.
void refuse_purges_in(const void* address, size_t bytes);

// What is_memory_locked() says.
void lock_all_memory(bool locked);

// Whether the program has locked what will come: then the system puts in memory at once what is committed.
void lock_what_comes(bool locked);

// The clock stands at so many milliseconds from now on.
void set_clock(uint64_t milliseconds);

// Effects: wait_for() calls `act` with the milliseconds that were to be slept, and returns.
void call_when_waiting(void (*act)(uint64_t milliseconds));

// The memory node that this thread runs on, from now on; 0 at first.
void set_memory_node(uint32_t node);

// How many bytes purge() says were in memory at most; SIZE_MAX at first: all.
void set_purged_from_memory(size_t bytes);

// How long touch() says that it took.
void set_touch_time(uint64_t nanoseconds);

// How often wake_one() was called, and wait_briefly().
size_t wakes();
size_t brief_waits();

// Effects: the next wait_briefly() calls `act`, on the thread that waits.
void call_at_next_brief_wait(void (*act)());

// What is reserved and not released now.
size_t reserved_bytes();

// All calls so far, or those since the last forget_records().
std::vector<Record> records();
void forget_records();
size_t count(Call call);

}  // namespace mock_os
