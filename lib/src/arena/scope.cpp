// See scope.hpp.
#include "arena/scope.hpp"

#include <errno.h>

#include "arena/chunk.hpp"
#include "base/options.hpp"
#include "heap/heap.hpp"

namespace sluice::arena {
namespace {

constinit std::atomic<uint64_t> other_stale_leaves{0};

// What opaque[0] holds: the serial number of an open scope, or that the leave which is due has nothing to do.
constexpr uintptr_t not_open = ~uintptr_t{0};

// Ends the open scopes from the n-th on.
void end_from(ThreadCache& c, unsigned n) noexcept {
  c.arena->depth = n;
  begin_scope(c);
}

int refuse(sluice_scope* scope, int error) noexcept {
  scope->opaque[0] = not_open;
  if (error != 0) errno = error;
  return -1;
}

}  // namespace

uint64_t stale_leaves_elsewhere() noexcept {
  return other_stale_leaves.load(std::memory_order_relaxed);
}

int enter(sluice_scope* scope, unsigned flags) noexcept {
  if (scope == nullptr) {
    errno = EINVAL;
    return -1;
  }
  if (flags != SLUICE_ROUTE && flags != SLUICE_NOROUTE) return refuse(scope, EINVAL);
  ThreadCache* const c = heap::usable_cache();
  if (c == nullptr || !options.arena) return refuse(scope, 0);
  Arena* const a = arena_of(*c);
  if (a == nullptr) return refuse(scope, ENOMEM);
  for (unsigned i = 0; i < a->depth; ++i) {
    if (a->open[i].storage != scope) continue;
    a->abandoned_scopes.store(a->abandoned_scopes.load(std::memory_order_relaxed) + (a->depth - i),
                              std::memory_order_relaxed);
    a->depth = i;
  }
  if (a->depth == most_scopes) {
    add_one(a->depth_overflows);
    return refuse(scope, 0);
  }
  give_back_some(*c);
  const bool routes = flags == SLUICE_ROUTE;
  if (routes && a->backed_off) {
    const KeepErrno keep;
    const WindowLock held(*c);
    resume(*c);
  }
  a->open[a->depth++] = {scope, ++a->last_serial, routes};
  scope->opaque[0] = a->last_serial;
  add_one(a->scopes);
  begin_scope(*c);
  return routes && a->backed_off ? -1 : 0;
}

void leave(sluice_scope* scope) noexcept {
  if (scope == nullptr || scope->opaque[0] == not_open) {
    if (scope != nullptr) scope->opaque[0] = 0;
    return;
  }
  ThreadCache& c = *thread_cache;
  Arena* const a = c.arena;
  if (a == nullptr || !c.attached) {
    other_stale_leaves.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  for (unsigned i = a->depth; i-- > 0;) {
    if (a->open[i].storage != scope || a->open[i].serial != scope->opaque[0]) continue;
    const unsigned skipped = a->depth - i - 1;
    a->abandoned_scopes.store(a->abandoned_scopes.load(std::memory_order_relaxed) + skipped, std::memory_order_relaxed);
    scope->opaque[0] = 0;
    return end_from(c, i);
  }
  add_one(a->stale_leaves);
}

}  // namespace sluice::arena
