// Start and end of the library in a process, and its dealings with the malloc of libc. Nothing here is needed for the
// first allocation, which may come earlier: see cache::attach.
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "base/options.hpp"
#include "copies.hpp"
#include "guarded/pool.hpp"
#include "guarded/report.hpp"
#include "heap/background.hpp"
#include "heap/heap.hpp"
#include "heap/reuse.hpp"
#include "heap/sampling.hpp"
#include "os/memory.hpp"
#include "program_malloc.hpp"
#include "stand_aside.hpp"
#include "stats/attach.hpp"
#include "stats/profile_file.hpp"
#include "stats/report.hpp"

// In threads.cpp, which is no part of libsluice.a.
extern const char stands_before_pthread_create __attribute__((weak));

// malloc.cpp refers to it: who links malloc from libsluice.a links this file, too.
namespace sluice {
extern const char starts_and_ends;
const char starts_and_ends = 0;
}  // namespace sluice

namespace {

using FreeFunction = void(void*);
using UsableSizeFunction = size_t(void*);

// libc's malloc serves from the end of the data segment first. What lies between where that end was when we started and
// where it is now can only be libc's: libraries loaded with RTLD_DEEPBIND call libc's malloc and give us its blocks.
std::atomic<uintptr_t> first_break{0};

bool is_of_libc(const void* block) noexcept {
  const auto address = reinterpret_cast<uintptr_t>(block);
  const uintptr_t low = first_break.load(std::memory_order_relaxed);
  if (low == 0 || address < low || address % sluice::min_alignment != 0) return false;
  return address < sluice::os::data_segment_end();
}

template <typename Function>
Function* function_of_libc(const char* name) noexcept {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

bool free_of_libc(void* block) noexcept {
  if (!is_of_libc(block)) return false;
  auto* free_function = function_of_libc<FreeFunction>("free");
  if (free_function == nullptr) return false;
  free_function(block);
  return true;
}

bool usable_size_of_libc(const void* block, size_t* size) noexcept {
  if (!is_of_libc(block)) return false;
  auto* usable_size = function_of_libc<UsableSizeFunction>("malloc_usable_size");
  if (usable_size == nullptr) return false;
  *size = usable_size(const_cast<void*>(block));
  return true;
}

__attribute__((constructor)) void start() {
  if (sluice::heap::stands_aside()) return sluice::stand_aside::start();
  sluice::cache::finish_start();
  first_break.store(sluice::os::data_segment_end(), std::memory_order_relaxed);
  sluice::heap::foreign_hooks = {free_of_libc, usable_size_of_libc, nullptr};
  sluice::copies::start();
  sluice::program_malloc::start();
  // Laid out before main: a handler that interrupts the program's first malloc would get nothing meanwhile.
  if (!sluice::program_malloc::serves) (void)sluice::heap::usable_cache();
  if (&stands_before_pthread_create == nullptr) sluice::background::start_with_caches();
  if (sluice::copies::another_serves) return;
  if (sluice::program_malloc::serves) sluice::stats::leaks_are_unknown("the program has a malloc of its own");
  sluice::stats::start_report();
  if (sluice::options.guard_rate != 0) {
    sluice::guarded::set_slots(sluice::options.guard_slots);
    sluice::guarded::start_reports();
    sluice::sampling::start(sluice::options.guard_rate);
  }
  sluice::stats::start_attach();
}

__attribute__((destructor)) void end() {
  if (sluice::heap::stands_aside()) return;
  if constexpr (sluice::checks_blocks) sluice::hardened::check_waiting();
  sluice::stats::print_report_at_exit();
  sluice::guarded::report_leaks();
  if (sluice::checked) {
    const sluice::heap::Validation found = sluice::heap::validate();
    if (found.outcome == sluice::heap::Validation::Wrong) sluice::fail_check(found.what, sluice::thread_cache);
  }
}

}  // namespace
