// All thread caches, and those whose threads have ended. Open it to change what is known of them together: for
// thread_life.cpp, where they come and go, and all_caches.cpp, which holds them all.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/mutex.hpp"
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

}  // namespace sluice::cache
