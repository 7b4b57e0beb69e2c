// A thread of the allocator's own: how it is made, how it sleeps, how it ends. Open it when it cannot be started, when
// it takes a signal of the program's, or when a process does not end.
//
// libc makes it, and knows it: a thread that libc does not know would keep its rights when the program gives them up
// (setuid), since it is libc that asks every thread. As memory.hpp otherwise; errno is undefined afterwards.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sluice::os {

// libc's pthread_create and pthread_join. A program may stand before these names with functions of its own, which would
// take the thread for one of the program's: whoever finds libc's own says so, before the first thread is started.
using ThreadCreateFunction = int(unsigned long* thread, const void* attributes, void* (*run)(void*), void* argument);
using ThreadJoinFunction = int(unsigned long thread, void** result);
void use_thread_functions(ThreadCreateFunction* create, ThreadJoinFunction* join) noexcept;

// Effects: starts a thread that calls run() and ends, and waits until it has done all that a sandbox may forbid that
// comes next: from then on it makes no system calls but those of run() and of its end. It blocks all signals but those
// by which libc (and libcap) ask each thread to change its rights, and has a small stack. libc allocates by malloc for
// it, on the calling thread. Returns: false when the system refuses. Requires: no lock is held. On macOS one thread
// calls at a time. Not for signal handlers.
bool start_thread(const char* name, void (*run)() noexcept, uintptr_t* thread) noexcept;

// Effects: waits until a thread that start_thread has started is gone, for libc too.
void join_thread(uintptr_t thread) noexcept;

// Effects: sleeps while `word` holds `expected`, for so many milliseconds at most; may return early. wake_one() of
// memory.hpp wakes.
inline constexpr uint64_t until_woken = UINT64_MAX;
void wait_for(std::atomic<uintptr_t>& word, uintptr_t expected, uint64_t milliseconds) noexcept;

// The number of this process, asked of the system: the child of a fork has another one, however it was made.
uint32_t process_id() noexcept;

}  // namespace sluice::os
