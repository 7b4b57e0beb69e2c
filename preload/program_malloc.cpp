// See program_malloc.hpp.
#include "program_malloc.hpp"

#include <link.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "base/policy.hpp"
#include "base/print.hpp"
#include "copies.hpp"
#include "heap/counters.hpp"
#include "heap/thread_cache.hpp"
#include "pages/region.hpp"

namespace sluice::program_malloc {

constinit bool serves = false;

namespace {

// Stops at the first object, which is the program. Its symbols are not looked at: large programs have many.
int look_at_program(dl_phdr_info* program, size_t, void* function) noexcept {
  const auto address = reinterpret_cast<uintptr_t>(function) - program->dlpi_addr;
  for (unsigned i = 0; i < program->dlpi_phnum; ++i) {
    const auto& segment = program->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && address - segment.p_vaddr < segment.p_memsz) return 1;
  }
  return -1;
}

template <typename Function>
bool is_of_program(Function* function) noexcept {
  return dl_iterate_phdr(look_at_program, reinterpret_cast<void*>(function)) == 1;
}

// Whether malloc hands out blocks of this heap. It does where the program only wraps the next malloc, and where what
// looks like a malloc of the program is a jump to ours. A block that is not ours is not freed: a malloc of the program
// may expect none back before main (GCL's, in Maxima, crashed).
bool hands_out_ours() noexcept {
  void* (*const volatile process_malloc)(size_t) = std::malloc;
  void (*const volatile process_free)(void*) = std::free;
  void* const block = process_malloc(64);
  const bool ours = block == nullptr || unit_index_of(block) < region_range_units;
  if (ours) process_free(block);
  return ours;
}

}  // namespace

void start() noexcept {
  if (!is_of_program(std::malloc) || !is_of_program(std::free)) return;
  if (is_of_program(start)) return;                         // libsluice.a
  if (!copies::another_serves && hands_out_ours()) return;  // a wrapper
  serves = true;
  if constexpr (!secure) cache::pass_on_new();
  if (copies::another_serves || !(secure || copies::reports_are_wanted())) return;  // said, or nobody asks
  char line[160];
  Print(line, sizeof line, STDERR_FILENO)
      .text(
          "sluice: this program has a malloc of its own, which operator new and delete are passed on to and no report "
          "is of\n");
}

void* allocate(size_t size, size_t alignment) noexcept {
  if (size == 0) size = 1;
  if (alignment <= min_alignment) return std::malloc(size);
  if (size > SIZE_MAX - alignment) return nullptr;
  return std::aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
}

void free(void* block) noexcept {
  counters::bump(counters::totals.foreign.frees);
  counters::bump(counters::totals.foreign.passed_to_libc);
  std::free(block);
}

}  // namespace sluice::program_malloc
