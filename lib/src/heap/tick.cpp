// What slow calls do for their cache now and then: what is more than the budget allows is evicted, what lies idle goes
// back, and so do pages that are old. Open it for when something is looked at. See tick() in thread_cache.hpp.
#include "base/check.hpp"
#include "heap/budget.hpp"
#include "heap/long_lists.hpp"
#include "heap/own_spans.hpp"
#include "heap/regular.hpp"
#include "heap/reuse.hpp"
#include "heap/sparse.hpp"
#include "heap/thread_life.hpp"
#include "heap/transfer.hpp"
#include "heap/validate.hpp"
#include "pages/quarantine.hpp"
#include "pages/region.hpp"

namespace sluice::cache {

namespace {

constexpr unsigned slow_calls_per_validation = 4096;  // in checked builds
constexpr unsigned slow_calls_per_sweep = 256;        // between two looks at stack arenas of threads that have ended

constinit std::atomic<uint32_t> flushes_asked{0};

// Says whether the class keeps anything that may be evicted; notes it if it was in use since the last look.
bool look_at(ThreadCache& c, unsigned k) noexcept {
  const Bin& bin = c.bins[k];
  const uint32_t delayed = delays_reuse ? hardened::delayed_mark(c, k) : 0;
  if (bin.head == nullptr && c.spare[k] == nullptr && delayed == 0 && c.uses[k].kept_kib == 0) return false;
  const auto mark = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(bin.head) >> 4) * 31 +
                    static_cast<uint32_t>(budget::room_of(c, k)) + delayed * 0x10001;
  const auto look = static_cast<uint16_t>(mark ^ mark >> 16);
  if (c.seen[k] == look) return true;
  c.seen[k] = look;
  c.uses[k].used_at = c.slow_calls;
  return true;
}

// The class used least recently that keeps anything, but for `busy`; 0: there is none.
unsigned oldest_class(ThreadCache& c, unsigned busy) noexcept {
  unsigned oldest = 0;
  for (unsigned k = 1; k < size_class_count; ++k) {
    if (k == busy || c.uses[k].kept_kib == 0 || !look_at(c, k)) continue;
    const uint32_t age = c.slow_calls - c.uses[k].used_at;
    const uint32_t most = c.slow_calls - c.uses[oldest].used_at;
    if (oldest == 0 || age > most || (age == most && c.uses[k].kept_kib > c.uses[oldest].kept_kib)) oldest = k;
  }
  return oldest;
}

// Looks at one class. What lies idle goes back.
void age_next_bin(ThreadCache& c, unsigned busy) noexcept {
  c.next_seen = c.next_seen + 1 < size_class_count ? c.next_seen + 1 : 1;
  const unsigned k = c.next_seen;
  if (k == busy || !look_at(c, k) || c.slow_calls - c.uses[k].used_at < idle_after) return;
  const CacheLock held(c.lock);
  budget::note_idle(c, k);
  flush_class(c, k);
}

__attribute__((noinline, cold)) void look_at_long(ThreadCache& c) noexcept {
  (void)look_at(c, c.long_class);
  if (!c.long_ends && !long_lists::are_over(c)) return;
  const CacheLock held(c.lock);
  flush_class(c, c.long_class);
}

// Evicts classes until what they keep is within the budget. `busy` is spared.
__attribute__((noinline, cold)) void keep_to_budget(ThreadCache& c, unsigned busy) noexcept {
  if (c.scattered_count.load(std::memory_order_relaxed) != 0) {  // each may keep a slab
    const CacheLock held(c.lock);
    flush_scattered(c);
  }
  while (c.kept_kib > c.budget_kib) {
    const unsigned k = oldest_class(c, busy);
    if (k == 0) return budget::grow(c, c.kept_kib - c.budget_kib);  // all that is left is what `busy` keeps
    const CacheLock held(c.lock);
    const uint32_t before = c.uses[k].kept_kib;
    (void)budget::weigh(c, k, 0);  // calls that take no slow path may have changed it
    if (c.uses[k].kept_kib >= before) evict(c, k);
  }
}

// All but the class that its caller is about to use.
__attribute__((noinline, cold)) void flush_as_asked(ThreadCache& c, uint32_t asked, unsigned busy) noexcept {
  c.flushes_seen = asked;
  budget::begin_anew(c);
  const CacheLock held(c.lock);
  flush_but(c, busy);
}

}  // namespace

void ask_for_flushes() noexcept {
  flushes_asked.fetch_add(1, std::memory_order_relaxed);
}

void tick(ThreadCache& c, unsigned busy) noexcept {
  ++c.slow_calls;
  const uint32_t asked = flushes_asked.load(std::memory_order_relaxed);
  if (asked != c.flushes_seen) [[unlikely]]
    flush_as_asked(c, asked, busy);
  if (c.kept_kib > c.budget_kib) [[unlikely]]
    keep_to_budget(c, busy);
  if (c.long_class != 0 && (c.long_ends || c.slow_calls % slow_calls_per_tick == 0)) [[unlikely]]
    look_at_long(c);
  if (sparse::is_due(c)) [[unlikely]] {
    const CacheLock held(c.lock);
    sparse::look(c);
  } else if (c.slow_calls % slow_calls_per_tick == 0) {
    look_if_due();
  } else if (region::has_shrunk.load(std::memory_order_relaxed)) [[unlikely]] {
    look_at_own();  // it may be the last call of a phase
  }
  if (c.slow_calls % slow_calls_per_tick == 0) {
    age_next_bin(c, busy);
    if (c.own_spans.granted != 0) own_spans::look(c);
    if (quarantines_spans) quarantine::purge_aged();
    region::purge_aged();
    regular::look_if_any();
    transfer::look();
  }
  if (c.slow_calls % slow_calls_per_sweep == 0) {
    sweep_orphans();
    if (c.arena != nullptr) hooks().tick(c);
  }
  if (checked && c.slow_calls % slow_calls_per_validation == 0) {
    const heap::Validation found = heap::validate();
    if (found.outcome == heap::Validation::Wrong) fail_check(found.what, &c);
  }
}

}  // namespace sluice::cache
