// The link from a free block to the next one of its list, in the block's first word. Open it to see what an overflow or
// a write after free can do to a list.
//
// A secure build encodes the link with a secret and the block's address, and seals it in the second word: a list that
// was written to is found when it is followed, and ends there.
#pragma once

#include <bit>
#include <cstdint>

#include "base/policy.hpp"

namespace sluice {

// Random bits, different in each process; set once before the first block exists. Secure builds only.
struct Secrets {
  uintptr_t link;
  uintptr_t seal;  // odd
  uintptr_t canary;
};
extern constinit Secrets secrets __attribute__((visibility("hidden")));

namespace link_detail {

struct Link {
  uintptr_t encoded;
  uintptr_t seal;
};

inline uintptr_t seal_of(uintptr_t encoded, const void* block) noexcept {
  const uintptr_t mixed = (encoded + reinterpret_cast<uintptr_t>(block)) * secrets.seal;
  return mixed ^ (mixed >> 32);
}

// Effects: reports a link that is not what set_next wrote. Returns: null, the end of the list, if the process goes on.
__attribute__((noinline, cold)) void* report_damaged_link(const void* block) noexcept;

}  // namespace link_detail

inline __attribute__((always_inline)) void set_next(void* block, void* next) noexcept {
  if constexpr (secure) {
    auto* const link = static_cast<link_detail::Link*>(block);
    link->encoded =
        reinterpret_cast<uintptr_t>(next) ^ secrets.link ^ std::rotl(reinterpret_cast<uintptr_t>(block), 32);
    link->seal = link_detail::seal_of(link->encoded, block);
  } else {
    *static_cast<void**>(block) = next;
  }
}

inline __attribute__((always_inline)) void* next_of(const void* block) noexcept {
  if constexpr (secure) {
    const auto* const link = static_cast<const link_detail::Link*>(block);
    if (link->seal != link_detail::seal_of(link->encoded, block)) [[unlikely]]
      return link_detail::report_damaged_link(block);
    return reinterpret_cast<void*>(link->encoded ^ secrets.link ^ std::rotl(reinterpret_cast<uintptr_t>(block), 32));
  } else {
    return *static_cast<void* const*>(block);
  }
}

}  // namespace sluice
