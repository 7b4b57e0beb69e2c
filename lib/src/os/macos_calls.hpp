// What the files of macOS share: waiting for a word to change, and the handlers of forks, which the zone calls. Open it
// when a thread is not woken.
#pragma once

#include <atomic>
#include <cstdint>

// Of libsystem_kernel since macOS 10.12. os_sync_wait_on_address of 14.4 is the same with a declaration; libc++ waits
// by these, too.
extern "C" {
int __ulock_wait(uint32_t operation, void* address, uint64_t value, uint32_t microseconds);
int __ulock_wake(uint32_t operation, void* address, uint64_t value);
}

namespace sluice::os {

// Call what register_fork_handlers() was given: before a fork, the last first, and after it in the parent and in the
// child.
void run_before_fork() noexcept;
void run_after_fork() noexcept;
void run_in_child() noexcept;

namespace ulock {
inline constexpr uint32_t compare_and_wait = 1;  // 32 bits: the lower half of the word, as with Linux's futexes
inline constexpr uint32_t no_errno = 0x01000000;
}  // namespace ulock

// `microseconds`: 0: for as long as nobody wakes it.
inline void wait_on(std::atomic<uintptr_t>& word, uintptr_t expected, uint32_t microseconds) noexcept {
  (void)__ulock_wait(ulock::compare_and_wait | ulock::no_errno, &word, static_cast<uint32_t>(expected), microseconds);
}

inline void wake_on(std::atomic<uintptr_t>& word) noexcept {
  (void)__ulock_wake(ulock::compare_and_wait | ulock::no_errno, &word, 0);
}

}  // namespace sluice::os
