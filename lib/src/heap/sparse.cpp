// See sparse.hpp.
#include "heap/sparse.hpp"

#include "base/options.hpp"
#include "heap/slab.hpp"
#include "os/memory.hpp"
#include "pages/region.hpp"

namespace sluice::sparse {
namespace {

constexpr size_t least_step = size_t{1} << 20;           // bytes freed between two looks, and worth giving back…
constexpr size_t least_step_at_once = size_t{64} << 10;  // …with SLUICE_PURGE_DELAY=0…
constexpr size_t worth_at_once = size_t{4} << 20;        // …and worth it before the purge delay is over
constexpr size_t kept_at_first = size_t{64} << 20;       // vacant bytes that stay until then, as of free spans
constexpr size_t sparse = 2;                             // a slab's free bytes to those in use: most is free…
constexpr size_t shrunk = 15;                            // …or hardly anything is left
constexpr uint64_t long_ago = 8;                         // purge delays
constexpr unsigned most_refusals = 4;                    // pages that the program has locked may lie in some slabs

constexpr size_t greater(size_t a, size_t b) noexcept {
  return a > b ? a : b;
}
constexpr size_t lesser(size_t a, size_t b) noexcept {
  return a < b ? a : b;
}

// The vacant pages of the slabs.
vacant::Bytes count(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock) {
  vacant::Bytes all{};
  for (unsigned k = 1; k < size_class_count; ++k) {
    for (uint32_t i = c.partial[k]; i != unit_index_none; i = region::unit_at(i)->slab.next) {
      const Unit* const s = region::unit_at(i);
      const vacant::Bytes bytes = vacant::count(s, slab::free_bits(s));
      all.present += bytes.present;
      all.absent += bytes.absent;
    }
  }
  return all;
}

bool goes_at_once() noexcept {
  return options.purge_delay == 0 || options.retain == 0;
}

// What went for nothing is kept next time, until that is long ago.
size_t missed_lately(Vacancy& v, uint64_t now) noexcept {
  if (v.missed != 0 && now - v.missed_ms > long_ago * options.purge_delay) {
    v.missed /= 2;
    v.missed_ms = now;
  }
  return v.missed < options.retain ? v.missed : options.retain;
}

// Whether the vacant pages should go. So many bytes of the cache's slabs are not free.
bool is_worth_it(ThreadCache& c, size_t used, uint64_t now) noexcept SLUICE_REQUIRES(c.lock) {
  Vacancy& v = c.vacancy;
  if (goes_at_once()) return count(c).present >= least_step_at_once;
  if (v.free_bytes < sparse * used) {
    v.dense_ms = now;
    return false;
  }
  const bool aged = now - v.dense_ms >= options.purge_delay;
  if (!aged && v.free_bytes < shrunk * used) return false;
  const size_t kept = missed_lately(v, now) + (aged ? 0 : lesser(kept_at_first, options.retain));
  if (v.free_bytes < kept) return false;
  const vacant::Bytes found = count(c);
  const size_t worth = aged ? greater(least_step, used / 4) : greater(worth_at_once, used / 3);
  return found.present >= worth && found.present + found.absent >= kept;
}

}  // namespace

void look(ThreadCache& c) noexcept {
  Vacancy& v = c.vacancy;
  const size_t used = v.slab_units * unit_size - v.free_bytes;
  const size_t step = greater(used / 8, goes_at_once() ? least_step_at_once : least_step);
  v.until_look.store(static_cast<ptrdiff_t>(step), std::memory_order_relaxed);
  if (region::keeps_all() || options.huge_pages) return;
  const uint64_t now = os::clock_ms();
  if (v.dense_ms == 0) v.dense_ms = now;
  if (!is_worth_it(c, used, now)) return;
  (void)give_back(c);
  v.dense_ms = now;  // the next are to get as old
}

size_t give_back(ThreadCache& c) noexcept {
  if (!vacant::gives_back) return 0;
  size_t bytes = 0;
  unsigned refusals = 0;
  for (unsigned k = 1; k < size_class_count; ++k) {
    const size_t before = bytes;
    for (uint32_t i = c.partial[k]; i != unit_index_none && refusals < most_refusals;) {
      Unit* const s = region::unit_at(i);
      i = s->slab.next;
      if (!vacant::drop(s, slab::free_bits(s), &bytes)) ++refusals;
    }
    if (bytes != before) slab::sort_partial(c, k);
  }
  if (bytes != 0) c.vacancy.gave_back_ms = os::clock_ms();
  return bytes;
}

}  // namespace sluice::sparse
