// The link from a free block to the next one of its list, in the block's first word. Open it to see what an overflow or
// a write after free can do to a list.
//
// A secure build encodes the link with a secret and the block's address. A link that was written to by anybody else
// leads to no address of the heap, but once in some millions: it is found when it is followed, and the list ends there.
#pragma once

#include <bit>
#include <cstdint>

#include "base/policy.hpp"

namespace sluice {

// Random bits, different in each process; set once before the first block exists. Secure builds only.
struct Secrets {
  uintptr_t link;
  uintptr_t canary;
  uintptr_t factor;  // odd
};
extern constinit Secrets secrets __attribute__((visibility("hidden")));

namespace link_detail {

inline uintptr_t mask_of(const void* block) noexcept {
  return secrets.link ^ std::rotl(reinterpret_cast<uintptr_t>(block), 32);
}

// Whether a list may lead from the one address to the other: a window has 16 TiB at most, and blocks are aligned.
inline bool may_follow(uintptr_t next, const void* block) noexcept {
  constexpr uintptr_t widest = uintptr_t{1} << 44;
  const uintptr_t distance = next - reinterpret_cast<uintptr_t>(block) + widest;
  return (distance >> 45 | (next & 15)) == 0 || next == 0;
}

// Effects: reports a link that is not what set_next wrote. Returns: null, the end of the list, if the process goes on.
__attribute__((noinline, cold)) void* report_damaged_link(const void* block) noexcept;

}  // namespace link_detail

inline __attribute__((always_inline)) void set_next(void* block, void* next) noexcept {
  if constexpr (secure)
    *static_cast<uintptr_t*>(block) = reinterpret_cast<uintptr_t>(next) ^ link_detail::mask_of(block);
  else
    *static_cast<void**>(block) = next;
}

inline __attribute__((always_inline)) void* next_of(const void* block) noexcept {
  if constexpr (secure) {
    const uintptr_t next = *static_cast<const uintptr_t*>(block) ^ link_detail::mask_of(block);
    if (!link_detail::may_follow(next, block)) [[unlikely]]
      return link_detail::report_damaged_link(block);
    return reinterpret_cast<void*>(next);
  } else {
    return *static_cast<void* const*>(block);
  }
}

}  // namespace sluice
