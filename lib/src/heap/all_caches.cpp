// What a snapshot and a fork do to all caches: they take every lock of the heap, and the child of a fork gives up what
// was half changed. See thread_cache.hpp.
#include "guarded/pool.hpp"
#include "heap/background.hpp"
#include "heap/budget.hpp"
#include "heap/long_lists.hpp"
#include "heap/orphan_index.hpp"
#include "heap/own_spans.hpp"
#include "heap/registry.hpp"
#include "heap/reuse.hpp"
#include "heap/sampling.hpp"
#include "heap/slab.hpp"
#include "heap/sparse.hpp"
#include "heap/thread_life.hpp"
#include "heap/transfer.hpp"
#include "heap/vacant.hpp"
#include "os/seldom_touched.hpp"
#include "pages/mappings.hpp"
#include "pages/region.hpp"
#include "profile/profile.hpp"

namespace sluice::cache {

constinit std::atomic<uintptr_t> wants_all{0};

namespace {

constexpr unsigned patience = 128;     // tenths of a millisecond that one that only tries waits for a lock
constexpr uint32_t most_let_in = 256;  // likewise, of who lets in: a thread that was stopped may hold the other up

// Both under the registry's lock. Where a signal handler does it in between, who was interrupted goes on without.
void begin_to_want() noexcept {
  wants_all.store(wants_all.load(std::memory_order_relaxed) | 1, std::memory_order_relaxed);
}
void end_to_want() noexcept {
  wants_all.store((wants_all.load(std::memory_order_relaxed) | 1) + 1, std::memory_order_relaxed);
}

// Calls act(mutex) for every lock of the heap, in their order, and for the registry's last.
template <typename Act>
void for_each_lock(Act act) noexcept {
  act(registry.lock);
  begin_to_want();
  for (ThreadCache* c = first(); c != nullptr; c = c->next_cache)
    act(c->lock);
  end_to_want();
  act(guarded::mutex());
  act(profile::mutex());
  act(region::mutex());
}
template <typename Act>
void for_each_lock_backwards(Act act) noexcept {
  act(region::mutex());
  act(profile::mutex());
  act(guarded::mutex());
  for (ThreadCache* c = first(); c != nullptr; c = c->next_cache)
    act(c->lock);
  act(registry.lock);
}

}  // namespace

void let_in_who_wants_all(ThreadCache& own, uintptr_t wanted) noexcept {
  const auto from = static_cast<uint32_t>(wanted);
  if (own.let_in_from != from) {
    own.let_in_from = from;
    own.let_in = 0;
  }
  if (own.let_in == most_let_in || own.lock.held_by_this_thread()) return;
  ++own.let_in;
  os::wait_briefly(wants_all, wanted);
}

void lock_all() noexcept {
  for_each_lock([](auto& mutex) { mutex.lock_to_look(); });
}

void unlock_all() noexcept {
  for_each_lock_backwards([](auto& mutex) { mutex.unlock_after_look(); });
}

namespace {

// Takes the locks of all caches in turn. Returns: the one whose lock is not to be had; null: there is none. Where
// blocks are passed on, threads hold their locks most of the time, but not for long, and let this one in.
ThreadCache* try_lock_caches() noexcept SLUICE_UNCHECKED_LOCKS {
  const bool waits = transfer::were_used.load(std::memory_order_relaxed) && !region::mutex().held_by_this_thread();
  if (waits) begin_to_want();
  ThreadCache* c = first();
  while (c != nullptr && !c->lock.held_by_this_thread() && c->lock.try_lock_patiently(waits ? patience : 1))
    c = c->next_cache;
  if (waits) end_to_want();
  return c;
}

}  // namespace

// A list of locks, taken here and given back in unlock_tried(): more than the analysis follows.
bool try_lock_all() noexcept SLUICE_UNCHECKED_LOCKS {
  if (!registry.lock.try_lock()) return false;
  ThreadCache* const c = try_lock_caches();
  if (c == nullptr && guarded::mutex().try_lock()) {
    if (profile::mutex().try_lock()) {
      if (region::mutex().try_lock()) return true;
      profile::mutex().unlock();
    }
    guarded::mutex().unlock();
  }
  for (ThreadCache* held = first(); held != c; held = held->next_cache)
    held->lock.unlock();
  registry.lock.unlock();
  return false;
}

void unlock_tried() noexcept {
  for_each_lock_backwards([](auto& mutex) SLUICE_UNCHECKED_LOCKS { mutex.unlock(); });
}

void lock_for_fork() noexcept {
  region::note_forking();
  for_each_lock([](auto& mutex) { mutex.lock_for_fork(); });
}

void unlock_after_fork() noexcept {
  for_each_lock_backwards([](auto& mutex) { mutex.unlock_after_fork(); });
}

namespace {

// Owns, in the child of a fork, what a thread was in the middle of changing that is no more. Its lock is never given
// back: what is freed there stays where it is, and nobody looks.
SLUICE_SELDOM_TOUCHED constinit ThreadCache lost{};

// Of what follows the analysis cannot know that the child has one thread, which needs no lock.

// Empties a cache whose lists cannot be trusted. What they led to is out of reach for good, but blocks that the program
// has stay its own, and may be freed.
void abandon_contents(ThreadCache& c) noexcept SLUICE_UNCHECKED_LOCKS {
  lost.lock.close();
  slab::abandon(c, lost);
  if (c.arena != nullptr) hooks().abandon(c, lost);
  c.slab_count = 0;
  c.kept_kib = 0;
  if (c.long_class != 0) long_lists::end(c, budget::most_cap(c.long_class));
  vacant::forget(c);
  c.scattered_count.store(0, std::memory_order_relaxed);
  for (unsigned k = 1; k < size_class_count; ++k) {
    c.partial[k] = unit_index_none;
    c.spare[k] = c.bins[k].head = nullptr;
    c.spare_count[k] = 0;
    c.bins[k].cap = budget::first_room(k);
    c.gated_room[k] = static_cast<int16_t>(budget::first_room(k));
    c.uses[k] = {};
    c.uses[k].earned = static_cast<uint16_t>(budget::first_cap(k));
    c.bins[k].room = c.mode.has(CacheMode::Counting) ? 0 : budget::first_room(k);
  }
  if constexpr (delays_reuse) hardened::abandon(c);
}

// The list of orphans cannot be trusted: every thread but this one has ended as far as the child knows.
void abandon_orphans() noexcept SLUICE_UNCHECKED_LOCKS {
  registry.orphans = nullptr;
  registry.orphan_count.store(0, std::memory_order_relaxed);
  registry.threads.live = thread_cache->attached ? 1 : 0;
  for (ThreadCache* c = first(); c != nullptr; c = c->next_cache) {
    if (c->attached && c != thread_cache) ++registry.threads.live;
    c->orphan.store(false, std::memory_order_relaxed);
    for (unsigned k = 0; k < size_class_count; ++k)
      orphan_index::forget(*c, k);
  }
  note_live(registry.threads.live);
  for (unsigned k = 0; k < size_class_count; ++k)
    (void)orphan_index::take_all(k);
}

// What the threads kept that stayed behind, and their grants, which only this one can use. One of them may have been
// about to note a grant.
void give_back_kept_spans() noexcept SLUICE_UNCHECKED_LOCKS {
  if (quarantines_spans) return;
  for (ThreadCache* c = first(); c != nullptr; c = c->next_cache)
    if (c != thread_cache) own_spans::renew(*c);
  region::renew_grants(thread_cache->own_spans.granted);
}

// A thread that stayed behind may have been about to note what it has.
void count_budgets_anew() noexcept {
  uint32_t long_kib = 0;
  for (ThreadCache* c = first(); c != nullptr; c = c->next_cache) {
    long_kib += c->long_kib;
  }
  long_lists::note_fork(long_kib);
}

}  // namespace

void unlock_in_child() noexcept SLUICE_UNCHECKED_LOCKS {
  background::forget();
  sparse::expect(0);                              // a thread that is no more may have been about to look
  wants_all.store(0, std::memory_order_relaxed);  // or to take all locks
  if (registry.lock.unlock_in_child() == AfterFork::Broken) abandon_orphans();
  bool any_lost = false;
  for (ThreadCache* c = first(); c != nullptr; c = c->next_cache) {
    if (c->lock.unlock_in_child() == AfterFork::Broken) {
      abandon_contents(*c);
      any_lost = true;
    }
    const bool has_thread = c->attached && !c->orphan.load(std::memory_order_relaxed);
    if (!has_thread || c == thread_cache) continue;
    // Its bins are whole: the thread was stopped on the fast path, which keeps them so at every step, but for `room`.
    c->from_fork = true;
    if (c->arena != nullptr) hooks().forked(*c);
    push_orphan(*c);
  }
  count_budgets_anew();
  if (guarded::mutex().unlock_in_child() == AfterFork::Broken) guarded::abandon_slots();
  if (profile::mutex().unlock_in_child() == AfterFork::Broken) profile::abandon();
  sampling::ask_in_child();
  region::note_fork();
  switch (region::mutex().unlock_in_child()) {
    case AfterFork::Broken:
      return region::abandon_free_spans();
    case AfterFork::Mine:
      return;
    case AfterFork::Whole:
      region::adopt_purging_spans();
      if (any_lost) slab::adopt_unowned(lost);
      give_back_kept_spans();
  }
}

bool is_lost(const ThreadCache* c) noexcept {
  return c == &lost;
}

}  // namespace sluice::cache
