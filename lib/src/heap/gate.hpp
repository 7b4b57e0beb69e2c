// The gate: what lets a thread's calls take the fast paths. Open it for what counting, scopes, sampling and passing on
// (CacheMode) change for them, and in which order.
#pragma once

#include <atomic>

#include "base/layout.hpp"

namespace sluice::cache {

// Effects: the cache's calls are served as `mode` says. All that the fast paths look at is written here: its limits and
// the rooms of its bins, and what is open of the window.
//
// Signal handlers that interrupt it may allocate, free, open scopes and leave them. Requires: the cache's thread, or
// that it has none; c.lock where counting begins or ends. It begins before the thread uses the cache.
void set_gate(ThreadCache& c, CacheMode mode) noexcept;

// Effects: shuts the fast paths of the window until the next set_gate, for a change of it. Requires: c.lock.
inline void shut_window(ThreadCache& c) noexcept {
  c.window.open_limit = nullptr;
  c.window.sampled_end = nullptr;
  c.window.open_unit.store(unit_index_none, std::memory_order_relaxed);
  c.window.open_owner.store(nullptr, std::memory_order_relaxed);
}

}  // namespace sluice::cache
