// Memory that may not be there, on macOS; and, for a profile, nothing: the loader's lists of images are under its
// locks, and nobody reads a profile there yet (os/unwind.hpp: can_unwind). See objects.hpp, unwind.hpp.
#include "os/objects.hpp"

#include <mach/mach.h>

#include "os/memory.hpp"
#include "os/unwind.hpp"

namespace sluice::os {

void prepare_objects() noexcept {}

bool note_module(uintptr_t, NotedModule* module) noexcept {
  *module = {};
  return false;
}

bool is_still_there(const NotedModule&) noexcept {
  return false;
}

bool find_object(uintptr_t, LoadedObject*) noexcept {
  return false;
}

bool find_object(uintptr_t, LoadedObject*, const char**) noexcept {
  return false;
}

void for_each_code_mapping(FoundMapping, void*) noexcept {}

bool copy_if_readable(void* to, uintptr_t from, size_t bytes) noexcept {
  vm_size_t copied = 0;
  return vm_read_overwrite(mach_task_self(), from, bytes, reinterpret_cast<vm_address_t>(to), &copied) ==
             KERN_SUCCESS &&
         copied == bytes;
}

bool is_readable(uintptr_t address) noexcept {
  char byte = 0;
  return copy_if_readable(&byte, address, 1);
}

void prepare_unwinding() noexcept {}
void forget_stacks() noexcept {}

Unwound unwind_from(const Registers&, uintptr_t*, unsigned, StackBounds&) noexcept {
  return {0, false};
}

Unwound unwind(uintptr_t*, unsigned, StackBounds&) noexcept {
  return {0, false};
}

}  // namespace sluice::os
