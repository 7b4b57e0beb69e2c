// When the vacant pages (heap/vacant.hpp) of a cache's slabs go back to the system: when a program asks for it, when
// they are old, and when the slabs hold so little that most pages will not be needed soon. Open it when memory between
// blocks that stay is not given back, or is given back too often.
//
//   slabs    ── freed: an eighth of what is used, or a MiB ──▶ look
//   look     ── 2/3 of the slabs free for a purge delay, and what is vacant is worth it ──▶ all vacant pages go
//            └─ 15/16 of the slabs free, and 64 MiB of them are vacant ──────────────────▶ likewise
//
// What goes and is needed again within two purge delays, or whose slab is empty then, went for nothing: so much more is
// kept the next time.
// Decision: lib/docs/decisions/026-pages-between-blocks-go-back.md.
#pragma once

#include "heap/vacant.hpp"

namespace sluice::sparse {

// Whether so much was freed that look() is due. Any thread may ask.
inline bool is_due(const ThreadCache& c) noexcept {
  return vacant::gives_back && c.vacancy.until_look.load(std::memory_order_relaxed) < 0;
}

// Effects: gives the vacant pages of the cache's slabs back if it is time. O(slabs) at most.
void look(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock);

// Effects: gives all vacant pages of the cache's slabs back. Returns: how many bytes.
size_t give_back(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock);

}  // namespace sluice::sparse
