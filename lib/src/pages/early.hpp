// How many free pages may go before they are as old as the purge delay: so few that it costs little, however soon they
// are needed again. The account of that; what goes is chosen in pages/purge.cpp. Open it to change how much may go.
// All needs the region's lock; in units and ms. Decision: lib/docs/decisions/030-a-little-goes-early.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pages/region_state.hpp"

namespace sluice::region::early {

// So many are saved up at most. None where the delay is so long that hardly any may go.
size_t most() noexcept;

// How many may go at `now`. So many come each second that to fill their pages again would take no more than a sixtieth
// of it.
size_t allowed(uint64_t now) noexcept SLUICE_REQUIRES(state.lock);

// Effects: takes all of them; and puts back what did not go.
size_t take_all(uint64_t now) noexcept SLUICE_REQUIRES(state.lock);
void put_back(size_t units) noexcept SLUICE_REQUIRES(state.lock);

// Effects: takes note that so many went since somebody looked at what a cache holds; and that units which went early
// are needed again. Of the former within `hurry`: the program is in a hurry, and its memory is hardly less for it. Then
// fewer may go for a while, no longer than two delays.
void note_gone_at_look(size_t units, uint64_t now) noexcept SLUICE_REQUIRES(state.lock);
void note_needed(size_t units, uint64_t hurry) noexcept SLUICE_REQUIRES(state.lock);

}  // namespace sluice::region::early
