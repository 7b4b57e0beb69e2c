// See region_state.hpp and units.hpp.
#include "pages/region_state.hpp"

namespace sluice {

constinit char* region_base = nullptr;
constinit Unit* region_units = nullptr;
constinit size_t region_range_units = 0;
constinit std::atomic<bool> has_several_threads{false};
constinit uint64_t* region_free_bitmaps = nullptr;
constinit AtomicField<uint64_t>* region_remote_bitmaps = nullptr;
constinit std::atomic<uint16_t>* region_block_states = nullptr;

namespace region {

constinit State state{};
constinit std::atomic<size_t> committed_limit{0};
constinit std::atomic<size_t> kept_free{as_options_say};
constinit std::atomic<uint32_t> handler_reserve{unit_index_none};

size_t first_index() noexcept {
  return state.first;
}

size_t first_span() noexcept {
  return state.whole_from > state.first ? state.whole_from : state.first;
}

size_t next_unit(size_t index) noexcept {
  ++index;
  for (unsigned i = 0; i < state.bare_gap_count; ++i)
    if (index > state.bare_gaps[i].from && index < state.bare_gaps[i].end) return state.bare_gaps[i].end;
  return index;
}

size_t limit() noexcept {
  return committed_limit.load(std::memory_order_relaxed);
}

}  // namespace region
}  // namespace sluice
