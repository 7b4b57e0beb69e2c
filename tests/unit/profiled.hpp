// Runs part of a test in a child process whose heap is profiled, and validates the heap afterwards.
#pragma once

#include <cstdint>
#include <string>

#include "heap/heap.hpp"
#include "heap/sampling.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "os/unwind.hpp"
#include "profile/profile.hpp"

namespace sluice::test {

// As in_child, at a rate in bytes.
template <typename Body>
std::string profiled(uint64_t rate, Body body) {
  return in_child([&]() -> std::string {
    heap::free(allocate(1));
    os::prepare_unwinding();
    if (profile::start(rate) != profile::Started::Yes) return "no memory";
    sampling::start_profile();
    std::string wrong = body();
    if (!wrong.empty()) return wrong;
    const char* invalid = heap::validate().what;
    return invalid != nullptr ? invalid : "";
  });
}

}  // namespace sluice::test
