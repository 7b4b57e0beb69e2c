// A copy of the process that looks for pointers, and the memory outside of the heap where a program keeps them. Open it
// when a block that the program still has is called leaked, or a leaked one is not.
//
// Roots are all private mappings that can be written, and what of others is anonymous: data and bss of the program and
// its libraries, stacks with their threads' variables (TLS), memory that the program mapped itself. Of the calling
// thread's stack what lies below its stack pointer does not count, nor does the stack of a thread that has ended, which
// libc keeps for the next one. Registers of other threads cannot be seen; of their stacks all counts.
//
// Nothing here allocates, takes a lock or calls what a program may have interposed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::os {

// Effects: makes a copy of the process, as fork does, that has the calling thread alone; no handler is called, no
// signal tells of its end, and wait() of the program does not see it. All signals are blocked in the copy, it leaves no
// core, and it ends with the calling thread. Returns: the copy's number, 0 in the copy, a negative errno value on
// failure.
int copy_process() noexcept;

// Effects: waits until the copy has ended, and ends it after so many milliseconds.
void await_copy(int copy, unsigned milliseconds) noexcept;

// Memory that reads as zero, which a copy of this process shares; null when there is none. Give it back as scratch.
void* map_shared(size_t bytes) noexcept;

// What of the calling thread tells its stack and those of other threads apart. Taken before the process is copied.
struct ThreadMark {
  uintptr_t stack_pointer;  // its variables and what its callers keep in registers lie above
  unsigned id_offset;       // of a thread's number in what libc keeps of a thread; 0: not known
};
ThreadMark mark_thread(uintptr_t stack_pointer) noexcept;

struct MemoryRange {
  uintptr_t begin, end;
};

// Memory that may hold pointers, by parts that are present.
class Roots {
 public:
  using Found = void (*)(void* context, MemoryRange range) noexcept;

  Roots() noexcept;
  ~Roots();
  Roots(const Roots&) = delete;
  Roots& operator=(const Roots&) = delete;

  // Effects: calls found for what is present of each root, without the ranges left out, which are sorted. Returns:
  // false when the system does not tell.
  bool for_each(const ThreadMark& thread, const MemoryRange* left_out, size_t left_out_count, Found found,
                void* context) noexcept;

  // Effects: calls found for what is present of a range that can be read.
  void for_each_present(MemoryRange range, Found found, void* context) noexcept;

 private:
  void for_each_shared(MemoryRange range, Found found, void* context) noexcept;

  struct Work;
  Work* work_;
};

}  // namespace sluice::os
