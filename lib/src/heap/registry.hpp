// All thread caches, and those whose threads have ended. Open it to change what is known of them together: for
// thread_life.cpp, where they come and go, and all_caches.cpp, which holds them all.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/mutex.hpp"
#include "heap/announce.hpp"
#include "heap/thread_cache.hpp"

namespace sluice::cache {

struct Registry {
  Mutex lock{LockRank::Registry};
  std::atomic<ThreadCache*> all{nullptr};
  ThreadCache* orphans SLUICE_GUARDED_BY(lock) = nullptr;
  std::atomic<size_t> orphan_count{0};
  ThreadCounts threads SLUICE_GUARDED_BY(lock){};
};
extern constinit Registry registry;

// Effects: the cache's thread has ended. Requires also, in the child of a fork, that there is one thread.
void push_orphan(ThreadCache& c) noexcept SLUICE_REQUIRES(registry.lock, c.lock);

inline constexpr unsigned most_orphans_looked_at = 256;  // those that ended last

// Calls `work(orphan)` under its lock for the caches of ended threads, but for those that somebody else uses at this
// moment; for none where somebody uses the registry, be it this thread in a fork or a look that a signal interrupted.
template <typename Work>
void for_each_orphan(Work work) noexcept {
  if (registry.orphan_count.load(std::memory_order_relaxed) == 0) return;
  if (registry.lock.is_taken() || !registry.lock.try_lock()) return;
  ThreadCache* o = registry.orphans;
  for (unsigned count = 0; o != nullptr && count < most_orphans_looked_at; o = o->next_orphan, ++count) {
    if (o->lock.held_by_this_thread() || !o->lock.try_lock()) continue;
    work(*o);
    slab::let_go(*o);
  }
  registry.lock.unlock();
}

}  // namespace sluice::cache
