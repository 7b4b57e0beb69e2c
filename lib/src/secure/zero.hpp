// Blocks of no bytes in libsluice-secure.so: each has an address of its own, 16 bytes apart, at pages that nobody can
// touch. Open it for what malloc(0) gives there. Compiled in secure builds alone.
//
// They lie in spans that are made when half of the addresses are in use, or all of those that an alignment leaves, each
// twice as long as the one before, and stay. Their states are in the table of the states of blocks (base/layout.hpp).
// An address serves again when all others have had their turn. All functions are thread-safe, and none waits.
#pragma once

#include <cstddef>

#include "base/layout.hpp"
#include "pages/region.hpp"

namespace sluice::hardened::zero {

// Returns: an address of its own at a multiple of `alignment`, or null when there is none. Requires: alignment is a
// power of two, at least 16 and at most unit_size.
void* allocate(size_t alignment) noexcept;

// Whether such blocks lie in the address's unit.
inline bool covers(const void* address) noexcept {
  const size_t index = unit_index_of(address);
  return index >= region::first_index() && index < region::limit() && region::unit_at(index)->use() == UnitState::Zero;
}

// The state of the block in which an address lies. Requires: covers(address).
inline std::atomic<uint16_t>& state_of(const void* address) noexcept {
  const size_t offset = reinterpret_cast<uintptr_t>(address) % unit_size;
  return region::block_states_at(unit_index_of(address))[offset / min_alignment];
}

// Whether a live block begins at the address. Requires: covers(address).
bool is_live(const void* address) noexcept;

// Effects: ends the life of a block. False when none that is live begins there. Requires: covers(address).
bool give_back(void* address) noexcept;

}  // namespace sluice::hardened::zero
