// See roots.hpp. On macOS nobody looks for leaks: a copy of the process that no handler and no signal tells of cannot
// be had there.
#include "os/roots.hpp"

#include <errno.h>
#include <sys/mman.h>

namespace sluice::os {

int copy_process() noexcept {
  return -ENOTSUP;
}

void await_copy(int, unsigned) noexcept {}

void* map_shared(size_t bytes) noexcept {
  void* const result = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANON, -1, 0);
  return result != MAP_FAILED ? result : nullptr;
}

ThreadMark mark_thread(uintptr_t stack_pointer) noexcept {
  return {stack_pointer, 0};
}

struct Roots::Work {};

Roots::Roots() noexcept : work_(nullptr) {}
Roots::~Roots() {}

bool Roots::for_each(const ThreadMark&, const MemoryRange*, size_t, Found, void*) noexcept {
  return work_ != nullptr;
}

void Roots::for_each_present(MemoryRange, Found, void*) noexcept {}
void Roots::for_each_shared(MemoryRange, Found, void*) noexcept {}

}  // namespace sluice::os
