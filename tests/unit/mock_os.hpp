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
  Release,  // the caller does not hear of a failure; the range stays mapped
  Commit,
  MakeReadable,
  Protect,
  Purge,
  Renew,
  MovePages,
  RegisterThreadExit,
  ArmThreadExit,
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

// Effects: the n-th call (n >= 1) of the kind from now on fails; with fail_from() all later ones too. Replaces what was
// said before. Thread-safe, as are all functions here.
void fail_nth(Call call, unsigned n);
void fail_from(Call call, unsigned n);
void never_fail();

// Effects: arm_thread_exit calls `act` first, as libc may allocate there.
void call_when_arming(void (*act)());

// Whether a call has failed since it was said which ones are to.
bool has_failed();

// What address_space_limit() says; SIZE_MAX at first. Reservations beyond it fail once `bytes` are reserved in all.
void set_address_space_limit(size_t bytes);

// A system without a limit that it tells: single reservations of more bytes than this fail.
void refuse_reservations_above(size_t bytes);

// A system that never reserves at the address that it is asked for.
void refuse_exact_reservations();

// What is reserved and not released now.
size_t reserved_bytes();

// All calls so far, or those since the last forget_records().
std::vector<Record> records();
void forget_records();
size_t count(Call call);

}  // namespace mock_os
