// See vacant.hpp.
#include "heap/vacant.hpp"

#include <bit>

#include "base/options.hpp"
#include "heap/link.hpp"
#include "heap/slab_shape.hpp"
#include "os/memory.hpp"
#include "pages/region.hpp"

namespace sluice::vacant {
namespace {

constexpr uint64_t soon = 8;  // purge delays

size_t pages_per_unit() noexcept {
  return unit_size / os::page_size();
}

// The blocks that reach into a page of a slab; `end` is not one of them.
struct Blocks {
  size_t first;
  size_t end;
};
Blocks blocks_on(const Unit* s, size_t page) noexcept {
  const uint64_t reciprocal = slab::reciprocals[s->slab.size_class];
  const size_t start = page * os::page_size();
  const size_t first = start * reciprocal >> slab::reciprocal_shift;
  const size_t end = ((start + os::page_size() - 1) * reciprocal >> slab::reciprocal_shift) + 1;
  return {first, end < s->slab.capacity ? end : s->slab.capacity};
}

// Calls act(word, bits) for the words of a bitmap that the blocks have bits in.
template <typename Act>
void for_each_word(Blocks blocks, Act act) noexcept {
  for (size_t block = blocks.first; block < blocks.end; block = (block / 64 + 1) * 64) {
    const size_t word = block / 64;
    const uint64_t behind = blocks.end >= (word + 1) * 64 ? 0 : ~uint64_t{0} << (blocks.end % 64);
    act(word, ~uint64_t{0} << (block % 64) & ~behind);
  }
}

bool is_vacant(const Unit* s, size_t page, const uint64_t* free) noexcept {
  const Blocks blocks = blocks_on(s, page);
  if (blocks.first >= blocks.end || blocks.end > s->slab.carved) return false;
  bool all_free = true;
  for_each_word(blocks, [&](size_t word, uint64_t bits) { all_free = all_free && (free[word] & bits) == bits; });
  return all_free;
}

bool is_absent(const Unit* s, size_t page) noexcept {
  return (s[page / pages_per_unit()].slab.absent >> page % pages_per_unit() & 1) != 0;
}
void set_absent(Unit* s, size_t page, bool absent) noexcept {
  uint16_t& pages = s[page / pages_per_unit()].slab.absent;
  const auto bit = static_cast<uint16_t>(1u << page % pages_per_unit());
  pages = static_cast<uint16_t>(absent ? pages | bit : pages & ~bit);
}

char* start_of(const Unit* s) noexcept {
  return region::address_of(region::index_of(s));
}
size_t pages_of(const Unit* s) noexcept {
  return (s->units - guard_units) * pages_per_unit();
}

// Whether so few blocks are free that none of the slab's pages can be vacant.
bool is_full(const Unit* s) noexcept {
  return s->slab.free_count * size_t{class_sizes[s->slab.size_class]} < os::page_size();
}

// Bytes of the vacant pages that are in memory.
size_t count_vacant(const Unit* s, const uint64_t* free) noexcept {
  size_t bytes = 0;
  for (size_t page = 0; !is_full(s) && page < pages_of(s); ++page)
    if (!is_absent(s, page) && is_vacant(s, page, free)) bytes += os::page_size();
  return bytes;
}

// Notes pages that went for nothing, if they went lately. Returns: whether they did.
bool went_too_early(Vacancy& v, size_t bytes) noexcept {
  const uint64_t now = os::clock_ms();
  if (bytes == 0 || now - v.gave_back_ms > soon * options.purge_delay) return false;
  v.missed += bytes;
  v.missed_ms = now;
  return true;
}

}  // namespace

void note_come(ThreadCache& c, const Unit* s) noexcept {
  const size_t bytes = s->slab.free_count * size_t{class_sizes[s->slab.size_class]};
  c.vacancy.slab_units += s->units;
  c.vacancy.tail_bytes += slab::tail_bytes(s);
  c.vacancy.free_bytes += bytes;
  c.vacancy.freed_since += bytes;
  if (s->slab.has_absent) c.vacancy.absent_bytes += count_absent(s);
}

void note_gone(ThreadCache& c, const Unit* s) noexcept {
  c.vacancy.slab_units -= s->units;
  c.vacancy.tail_bytes -= slab::tail_bytes(s);
  if (s->slab.has_absent) c.vacancy.absent_bytes -= count_absent(s);
  note_taken(c, s, s->slab.free_count);
}

void forget(ThreadCache& c) noexcept {
  Vacancy& v = c.vacancy;
  v.free_bytes = v.slab_units = v.tail_bytes = v.absent_bytes = v.freed_since = v.left = v.counted_free = 0;
  v.walk = Walk::None;
  v.next = unit_index_none;
}

uint32_t find_present(const Unit* s, const uint64_t* free, uint64_t* present) noexcept {
  const uint32_t words = (uint32_t{s->slab.capacity} + 63) / 64;
  __builtin_memcpy(present, free, words * sizeof *present);
  for (size_t page = 0; page < pages_of(s); ++page)
    if (is_absent(s, page))
      for_each_word(blocks_on(s, page), [present](size_t word, uint64_t bits) { present[word] &= ~bits; });
  uint32_t count = 0;
  for (uint32_t i = 0; i < words; ++i)
    count += static_cast<uint32_t>(std::popcount(present[i]));
  return count;
}

void bring_back(ThreadCache& c, Unit* s, void* list) noexcept {
  const size_t size = class_sizes[s->slab.size_class];
  size_t bytes = 0;
  for (void* block = list; block != nullptr; block = next_of(block)) {
    const auto offset = static_cast<size_t>(static_cast<char*>(block) - start_of(s));
    for (size_t page = offset / os::page_size(); page * os::page_size() < offset + size; ++page) {
      if (!is_absent(s, page)) continue;
      set_absent(s, page, false);
      bytes += os::page_size();
    }
  }
  c.vacancy.absent_bytes -= bytes;
  s->slab.has_absent = count_absent(s) != 0;
  if (went_too_early(c.vacancy, bytes)) os::call_counts.regretted_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void note_wasted(ThreadCache& c, const Unit* s) noexcept {
  (void)went_too_early(c.vacancy, count_absent(s));
}

size_t count_present(const Unit* s, const uint64_t* free) noexcept {
  if (!s->slab.may_be_vacant || s->slab.keeps_vacant) return 0;
  return count_vacant(s, free);
}

size_t count_absent(const Unit* s) noexcept {
  size_t pages = 0;
  for (size_t i = 0; i < s->units - guard_units; ++i)
    pages += static_cast<size_t>(std::popcount(s[i].slab.absent));
  return pages * os::page_size();
}

Dropped drop(ThreadCache& c, Unit* s, const uint64_t* free) noexcept {
  Dropped dropped{};
  const size_t pages = is_full(s) ? 0 : pages_of(s);
  s->slab.keeps_vacant = false;
  s->slab.may_be_vacant = false;
  for (size_t page = 0; page < pages; ++page) {
    const size_t first = page;
    while (page < pages && !is_absent(s, page) && is_vacant(s, page, free))
      ++page;
    if (page == first) continue;
    ++dropped.calls;
    const size_t length = (page - first) * os::page_size();
    char* const start = start_of(s) + first * os::page_size();
    if (const size_t unit = unit_index_of(start); region::lies_in_huge_page(unit))
      region::split_page_of(unit, start, length);
    if (!os::drop(start, length)) {
      s->slab.keeps_vacant = s->slab.may_be_vacant = true;
      break;
    }
    os::call_counts.purged_bytes.fetch_add(length, std::memory_order_relaxed);
    for (size_t i = first; i < page; ++i)
      set_absent(s, i, true);
    s->slab.has_absent = true;
    dropped.bytes += length;
  }
  c.vacancy.absent_bytes += dropped.bytes;
  region::note_pages_gone(region::index_of(s), dropped.bytes);
  return dropped;
}

const char* validate(const Unit* s, const uint64_t* free) noexcept {
  for (size_t page = 0; page < pages_of(s); ++page)
    if (is_absent(s, page) && !is_vacant(s, page, free)) return "slab: a page is absent, and a block of it is not free";
  if ((count_absent(s) != 0) != s->slab.has_absent) return "slab: absent pages are not noted";
  if (!s->slab.may_be_vacant && count_vacant(s, free) != 0) return "slab: vacant pages are not noted";
  uint64_t present[bitmap_words];
  return s->slab.at_end && find_present(s, free, present) != 0 ? "slab: it is at the end of its list for nothing"
                                                               : nullptr;
}

}  // namespace sluice::vacant
