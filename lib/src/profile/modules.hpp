// Modules: the objects (program, libraries) whose code is in a sampled stack, as they were when it was first met. Open
// it when an address of a library that was closed since has no file's name.
//
// The table has a fixed size. A module is noted when a site is made, while its code is on the stack: so it is loaded
// then. Where another one lies at its place later, that one is noted too. Under the profile's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/objects.hpp"

namespace sluice::profile {

class Modules {
 public:
  // Effects: maps the table. False when there is no memory; nothing is noted then.
  bool map() noexcept;

  // Effects: notes the modules of a stack.
  void note(const uintptr_t* frames, unsigned count) noexcept;

  size_t count() const noexcept { return count_; }
  const os::NotedModule& at(size_t index) const noexcept { return modules_[index]; }

 private:
  static constexpr size_t most = 1024;

  bool covers(uintptr_t address) noexcept;

  os::NotedModule* modules_ = nullptr;
  size_t count_ = 0;
  size_t last_ = 0;  // where the last address lay
};

// Of the profile. Requires that a Reading holds it.
const Modules& modules() noexcept;

}  // namespace sluice::profile
