// How the owner of a slab learns of remote frees, and who takes them in where it does not look. Open it when memory
// that other threads freed is not found.
#pragma once

#include <cstdint>

#include "base/layout.hpp"

namespace sluice::slab {

// Effects: queues a slab with remote frees on its owner, unless it is queued. `units` is its length, read before
// put_remote: the slab may be gone by now. Lock-free, but for owners that have ended or do not look: their lock is
// tried.
void announce(Unit* s, uint32_t units) noexcept;

// Effects: as collect_pending for a cache whose thread has ended, until nothing is queued on it. If its lock is held it
// is noted, and the next who searches the orphans' memory does it. Requires: the caller does not hold the lock, and let
// it go by unlock_before_reading() if it did.
void look_after(ThreadCache& orphan) noexcept SLUICE_EXCLUDES(orphan.lock);

// Effects: gives the lock of an orphan back, and does what others left to its holder.
inline void let_go(ThreadCache& orphan) noexcept SLUICE_GIVES_BACK(orphan.lock) {
  orphan.lock.unlock_before_reading();
  look_after(orphan);
}

}  // namespace sluice::slab
