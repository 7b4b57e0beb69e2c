// Spans that lost their mapping: the system takes an old mapping away before it makes the new one, and may then have no
// memory for that. Nobody may touch them until they have a mapping again. Open it when a renewal fails.
#pragma once

#include <cstddef>

namespace sluice::lost_spans {

// Effects: sets a span aside that is nobody's; it is free again once the system has a mapping for it. Lock-free.
// Requires: its ends and its length are written as those of a large span, and its class byte is none.
void put(size_t index) noexcept;

// Effects: gives back a span whose mapping may have been lost; puts it here if it was and cannot be had for now.
// Returns: whether the system had what was needed. Requires: as put, and no lock.
bool give_back(size_t index) noexcept;

// Effects: gives back the spans that the system has a mapping for now. Requires no lock.
void recover() noexcept;

}  // namespace sluice::lost_spans
