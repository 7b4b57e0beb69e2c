// See processors.hpp.
#include "processors.hpp"

#include <sys/mman.h>

#include "base/layout.hpp"
#include "heap/thread_cache.hpp"
#include "pages/region.hpp"

namespace sluice::contention {

thread_local unsigned processor = no_processor;
thread_local bool is_counted = false;

namespace {

struct Line {
  uintptr_t number;  // 0: none
  uint64_t holders;  // a bit for each processor
};
constexpr size_t table_size = size_t{1} << 22;

Counts totals;

// Not from malloc: it is asked about accesses of one.
Line* make_table() noexcept {
  void* const memory = mmap(nullptr, table_size * sizeof(Line), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) __builtin_trap();
  return static_cast<Line*>(memory);
}

Line& line_of(uintptr_t number) noexcept {
  static Line* const table = make_table();
  static size_t used = 0;
  for (size_t i = number * 0x9e3779b97f4a7c15 >> 42;; i = (i + 1) % table_size) {
    if (table[i].number == number) return table[i];
    if (table[i].number != 0) continue;
    if (++used > table_size / 2) __builtin_trap();
    table[i].number = number;
    return table[i];
  }
}

bool lies_in(uintptr_t address, const void* first, size_t bytes) noexcept {
  return address - reinterpret_cast<uintptr_t>(first) < bytes;
}

Area area_of(uintptr_t address) noexcept {
  for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
    if (lies_in(address, c, sizeof *c)) return c == thread_cache ? Area::OwnCache : Area::OtherCache;
  const size_t limit = region::limit();
  if (lies_in(address, class_bytes(), limit)) return Area::ClassBytes;
  if (lies_in(address, region::unit_at(0), limit * sizeof(Unit))) return Area::Descriptors;
  if (lies_in(address, region::free_bitmap_at(0), limit * bitmap_words * sizeof(uint64_t)) ||
      lies_in(address, region::remote_bitmap_at(0), limit * bitmap_words * sizeof(uint64_t)))
    return Area::Bitmaps;
  return lies_in(address, class_bytes(), limit << unit_shift) ? Area::Blocks : Area::Globals;
}

}  // namespace

void access(const volatile void* address, size_t bytes, Access kind) noexcept {
  if (processor == no_processor) return;
  const unsigned own = processor;
  const uint64_t own_bit = uint64_t{1} << own;
  const auto first = reinterpret_cast<uintptr_t>(address);
  bool has_moved = false;
  processor = no_processor;  // what follows is the model's own
  for (uintptr_t number = first >> line_shift; number <= (first + bytes - 1) >> line_shift; ++number) {
    Line& line = line_of(number);
    const uint64_t others = line.holders & ~own_bit;
    const bool moves = others != 0 && (kind != Access::Read || (line.holders & own_bit) == 0);
    line.holders = kind == Access::Read ? line.holders | own_bit : own_bit;
    if (!moves || !is_counted) continue;
    has_moved = true;
    ++totals.moves[static_cast<unsigned>(area_of(first))];
  }
  if (kind == Access::Update && is_counted) {
    ++totals.atomics;
    if (has_moved) ++totals.moving_atomics;
  }
  processor = own;
}

const Counts& counts() noexcept {
  return totals;
}

void forget_counts() noexcept {
  totals = {};
}

}  // namespace sluice::contention
