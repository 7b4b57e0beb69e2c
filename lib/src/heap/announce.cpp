// See announce.hpp.
#include "heap/announce.hpp"

#include "heap/orphan_index.hpp"
#include "heap/slab.hpp"
#include "heap/sparse.hpp"
#include "pages/region.hpp"

namespace sluice::slab {
namespace {

// Takes remote frees in for an owner that does not, and looks whether pages are to go.
void collect_for(ThreadCache& owner) noexcept SLUICE_REQUIRES(owner.lock) {
  collect_pending(owner);
  if (sparse::is_due(owner)) sparse::look(owner);
}

}  // namespace

void announce(Unit* s, uint32_t units) noexcept {
  // Pairs with the exchange in collect_pending: either this finds the slab not queued, or the collector finds its bits.
  if (s->queued.exchange(true, std::memory_order_acq_rel)) return;
  ThreadCache* owner = queue_on_owner(s, units);
  if (owner == nullptr) return;
  // A thread that has ended does not look any more; one that is idle may not look for long.
  constexpr uint32_t patience = 16;  // units
  if (!owner->orphan.load(std::memory_order_seq_cst)) {
    // Sequentially consistent: pairs with background::look, which is seen to be asleep or finds this slab.
    if (region::rest::word.load(std::memory_order_seq_cst) == region::rest::asleep) [[unlikely]]
      region::rest::wake();
    // Of a common cache nobody is the owner.
    const uint32_t may_wait = owner->is_common ? 0 : patience;
    if (owner->pending_units.load(std::memory_order_relaxed) <= may_wait || !owner->lock.try_lock()) return;
    collect_for(*owner);
    owner->lock.unlock_before_reading();
    if (!owner->orphan.load(std::memory_order_seq_cst)) return;
  }
  look_after(*owner);
}

// Nothing stays queued on an orphan unseen. Who queues a slab comes here afterwards and finds the lock free, or notes
// the cache: the note is new, or its finder ends it later and looks then. Who ends a thread comes here after `orphan`
// is set, so that it sees what those queued who did not see that yet.
void look_after(ThreadCache& orphan) noexcept {
  while (orphan.pending.load(std::memory_order_seq_cst) != unit_index_none) {
    if (!orphan.lock.try_lock()) return orphan_index::note(orphan, orphan_index::to_look_at);
    collect_for(orphan);
    orphan.lock.unlock_before_reading();
  }
}

}  // namespace sluice::slab
