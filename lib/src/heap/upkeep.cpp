// See upkeep.hpp.
#include "heap/upkeep.hpp"

#include "base/options.hpp"
#include "heap/announce.hpp"
#include "heap/budget.hpp"
#include "heap/registry.hpp"
#include "heap/slab.hpp"
#include "heap/thread_cache.hpp"
#include "heap/transfer.hpp"
#include "os/memory.hpp"
#include "pages/region.hpp"

namespace sluice::cache {

namespace {

constexpr uint64_t part_until_retry = 8;  // of a purge delay, until a cache that was in use is tried again

// Of a thread that runs, and has remote frees to take in. Sequentially consistent: pairs with push_pending and
// announce.
bool has_pending(const ThreadCache& c) noexcept {
  return !c.orphan.load(std::memory_order_relaxed) && c.pending.load(std::memory_order_seq_cst) != unit_index_none;
}

// Gives the lock of a cache back, whether it has a thread or not, and lets in who waits for it.
void let_go_of_any(ThreadCache& c) noexcept SLUICE_GIVES_BACK(c.lock) {
  const bool is_wanted = c.lock.is_wanted();
  if (c.orphan.load(std::memory_order_relaxed))
    slab::let_go(c);
  else
    c.lock.unlock();
  if (is_wanted) c.lock.let_in();
}

bool try_lock_of_other(ThreadCache& c) noexcept SLUICE_TAKES_IF_TRUE(c.lock) {
  return !c.lock.held_by_this_thread() && c.lock.try_lock();
}

// Gives the vacant pages of a cache back but *keep bytes, in portions, between which its thread may go on. Where its
// lock is held for long, its thread does the rest. Takes from *keep what stays. Returns: how many bytes went.
size_t give_back_vacant(ThreadCache& c, size_t* keep) noexcept {
  constexpr unsigned patience = 100;  // tenths of a millisecond: its thread may have come in between two portions
  size_t bytes = 0;
  bool walks = false;
  do {
    if (c.lock.held_by_this_thread() || !c.lock.try_lock_patiently(walks ? patience : 1)) {
      if (walks) sparse::leave_to_owner(c);
      return bytes;
    }
    walks = walks || sparse::begin(c, *keep, 0) || sparse::is_asked(c);
    if (walks) bytes += sparse::go_on(c);
    walks = walks && sparse::is_asked(c);
    if (!walks) *keep -= sparse::left(c) < *keep ? sparse::left(c) : *keep;
    let_go_of_any(c);
  } while (walks);
  return bytes;
}

}  // namespace

void collect_from_others(Others which) noexcept {
  for (ThreadCache* c = first(); c != nullptr; c = c->next_cache) {
    if (c == thread_cache || (which == Others::WithPending && !has_pending(*c) && !sparse::is_due(*c))) continue;
    if (!c->orphan.load(std::memory_order_relaxed) && try_lock_of_other(*c)) {
      slab::collect_pending(*c);
      slab::destroy_empty(*c);
      c->lock.unlock();
    }
    while (sparse::is_due(*c) && try_lock_of_other(*c)) {
      sparse::look(*c);
      let_go_of_any(*c);
    }
  }
}

void give_back_own_vacant() noexcept {
  ThreadCache& own = *thread_cache;
  if (!own.attached || own.lock.held_by_this_thread()) return;
  for (bool begun = false, goes_on = true; goes_on; begun = true) {
    own.lock.lock();
    if (begun || sparse::begin(own, 0, sparse::little(own)) || sparse::is_asked(own)) (void)sparse::go_on(own);
    goes_on = sparse::is_asked(own);
    let_go_of_any(own);
  }
}

size_t give_back_vacant(size_t keep) noexcept {
  size_t bytes = 0;
  for (ThreadCache* c = first(); c != nullptr; c = c->next_cache)
    bytes += give_back_vacant(*c, &keep);
  return bytes;
}

bool any_pending() noexcept {
  for (const ThreadCache* c = first(); c != nullptr; c = c->next_cache)
    if (has_pending(*c)) return true;
  return false;
}

namespace {

// Looks at a cache that is due, unless somebody uses it at this moment. Says whether it has walked over slabs. Returns:
// when it is due again.
uint64_t look_when_due(ThreadCache& c, uint64_t now, bool* has_walked) noexcept {
  if (!try_lock_of_other(c)) return now + options.purge_delay / part_until_retry + 1;
  const uint64_t portions = c.vacancy.portions;
  sparse::look(c);
  *has_walked = c.vacancy.portions != portions;
  const uint64_t due = sparse::due(c);
  let_go_of_any(c);
  return due;
}

// What some caches own, and how much of it lies in caches: in theirs, or in those of others among them.
class Holding {
 public:
  void add(const ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock) {
    slab_units_ += c.vacancy.slab_units;
    for (unsigned k = 1; k < size_class_count; ++k)
      needed_[k] += int64_t{c.uses[k].used.load(std::memory_order_relaxed)} - held_blocks(c, k);
  }

  // What was passed on, whoever owns it.
  __attribute__((noinline, cold)) void add_transfer_lists() noexcept {
    for (unsigned k = 1; k < size_class_count; ++k)
      needed_[k] -= transfer::held_blocks(k);
  }

  // Units of their slabs that the program's blocks do not need.
  size_t unused_units() const noexcept {
    size_t bytes = 0;
    for (unsigned k = 1; k < size_class_count; ++k)
      bytes += needed_[k] > 0 ? static_cast<size_t>(needed_[k]) * class_sizes[k] : 0;  // held: blocks of yet others
    const size_t units = bytes / unit_size + 1;
    return slab_units_ > units ? slab_units_ - units : 0;
  }

 private:
  size_t slab_units_ = 0;
  int64_t needed_[size_class_count] = {};  // blocks
};

// How often something may be done: each time pays with a part of the purge delay, some ms at least, and some may come
// at once.
class Rate {
 public:
  constexpr Rate(uint64_t part_of_delay, uint64_t least_ms, uint64_t at_once) noexcept
      : part_(part_of_delay), least_ms_(least_ms), at_once_(at_once) {}

  // Returns: whether it may be done at `now` (ms). Then it is paid for.
  bool take(uint64_t now) noexcept {
    const uint64_t part = options.purge_delay / part_;
    const uint64_t price = part > least_ms_ ? part : least_ms_;
    uint64_t until = until_ms_.load(std::memory_order_relaxed);
    if (until > now + price * at_once_) return false;
    return until_ms_.compare_exchange_strong(until, (until > now ? until : now) + price, std::memory_order_relaxed);
  }

 private:
  uint64_t part_, least_ms_, at_once_;
  std::atomic<uint64_t> until_ms_{0};  // what was done so far is paid for at this time
};

constinit Rate flushes{16, 1, 4};             // since a phase is over
constinit Rate looks_at_orphans{64, 15, 16};  // each takes some 0.2 ms where 256 threads have ended

// Of caches without a thread.
void add_orphans(Holding& holding) noexcept {
  const auto add = [&holding](ThreadCache& c) SLUICE_UNCHECKED_LOCKS { holding.add(c); };
  for_each_orphan(add);
  if (transfer::were_used.load(std::memory_order_relaxed)) holding.add_transfer_lists();
  transfer::for_each_common(add);
}

__attribute__((noinline, cold)) void flush_where_over(ThreadCache& own, uint64_t now, bool with_orphans) noexcept {
  Holding holding;
  {
    const MutexLock<OwnerMutex> held(own.lock);  // others may take slabs away that they have emptied
    holding.add(own);
  }
  if (with_orphans) add_orphans(holding);
  if (!region::would_be_over(holding.unused_units()) || !flushes.take(now)) return;
  budget::begin_anew(own);
  transfer::flush();
  flush_own_blocks();
  flush_orphans();
  region::purge_if_over();
}

size_t slab_units(ThreadCache& c) noexcept {
  const MutexLock<OwnerMutex> held(c.lock);
  return c.vacancy.slab_units;
}

}  // namespace

// To look at each class takes a microsecond, and a program may shrink and grow again thousands of times a second.
void look_at_own() noexcept {
  ThreadCache& own = *thread_cache;
  if (!own.attached || own.lock.held_by_this_thread() || region::mutex().held_by_this_thread()) return;
  region::has_shrunk.store(false, std::memory_order_relaxed);
  const uint64_t now = os::clock_ms();
  const bool with_orphans = looks_at_orphans.take(now);
  if (with_orphans || region::may_be_over(slab_units(own))) flush_where_over(own, now, with_orphans);
}

void look_at_ended() noexcept {
  const uint64_t now = os::clock_ms();
  if (region::mutex().held_by_this_thread() || !looks_at_orphans.take(now)) return;
  Holding holding;
  add_orphans(holding);
  if (!region::would_be_over(holding.unused_units()) || !flushes.take(now)) return;
  flush_orphans();
  region::purge_if_over();
}

void look_at_due() noexcept {
  if (thread_cache->lock.held_by_this_thread() || region::mutex().held_by_this_thread()) return;
  const uint64_t now = os::clock_ms();
  if (!sparse::claim_due(now)) return;
  uint64_t next = sparse::never;
  bool has_walked = false;
  for (ThreadCache* c = first(); c != nullptr; c = c->next_cache) {
    uint64_t due = sparse::due(*c);
    if (due <= now && !has_walked) due = look_when_due(*c, now, &has_walked);
    if (due < next) next = due;
  }
  if (next != sparse::never) sparse::expect(next);
}

}  // namespace sluice::cache
