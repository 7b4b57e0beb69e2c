// See roots.hpp. There is no heap profile on macOS, and so nobody looks for leaks: a copy of the process cannot be had.
#include "os/roots.hpp"

#include <errno.h>

namespace sluice::os {

int copy_process() noexcept {
  return -ENOTSUP;
}

void await_copy(int, unsigned) noexcept {}

void* map_shared(size_t) noexcept {
  return nullptr;
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
