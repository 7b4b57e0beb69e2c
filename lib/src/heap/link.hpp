// The link from a free block to the next one of its list, in the block's first word. Open it to see what an overflow or
// a write after free can do to a list.
//
// A secure build encodes the link with secrets and the block's address: the product spreads each bit that is changed
// over all those above it. A link that was written to by anybody else leads to no address of the heap, but once in some
// millions: it is found when it is followed, and the list ends there.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "base/policy.hpp"
#include "base/secrets.hpp"

namespace sluice {
namespace link_detail {

inline uintptr_t mask_of(const void* block) noexcept {
  return secrets.link ^ std::rotl(reinterpret_cast<uintptr_t>(block), 32);
}

inline void* decode(const void* block) noexcept {
  return reinterpret_cast<void*>(*static_cast<const uintptr_t*>(block) * secrets.inverse ^ mask_of(block));
}

// Whether a list may lead from the one address to the other: a window has 16 TiB at most, and blocks are aligned.
inline bool may_follow(const void* next, const void* block) noexcept {
  constexpr uintptr_t widest = uintptr_t{1} << 44;
  const auto address = reinterpret_cast<uintptr_t>(next);
  const uintptr_t distance = address - reinterpret_cast<uintptr_t>(block) + widest;
  return (distance >> 45 | (address & 15)) == 0 || next == nullptr;
}

// Effects: reports a link that is not what set_next wrote. Returns: null, the end of the list, if the process goes on.
__attribute__((noinline, cold)) void* report_damaged_link(const void* block) noexcept;

}  // namespace link_detail

inline __attribute__((always_inline)) void set_next(void* block, void* next) noexcept {
  if constexpr (encodes_links)
    *static_cast<uintptr_t*>(block) =
        (reinterpret_cast<uintptr_t>(next) ^ link_detail::mask_of(block)) * secrets.factor;
  else
    *static_cast<void**>(block) = next;
}

// What is written above reaches memory before what is written below, as far as the compiler goes; it costs no
// instruction. A fork may stop the thread between any two writes, and its child finds those before and none after
// (lib/docs/internals/threads-and-forks.md). Between the link of a block and the head that leads to it, this keeps the
// list whole.
inline __attribute__((always_inline)) void keep_order() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

inline __attribute__((always_inline)) void* next_of(const void* block) noexcept {
  if constexpr (encodes_links) {
    void* const next = link_detail::decode(block);
    return link_detail::may_follow(next, block) ? next : link_detail::report_damaged_link(block);
  } else {
    return *static_cast<void* const*>(block);
  }
}

}  // namespace sluice
