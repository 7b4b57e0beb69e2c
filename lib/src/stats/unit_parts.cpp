// See unit_parts.hpp.
#include "stats/unit_parts.hpp"

#include <algorithm>
#include <cstring>

#include "heap/large.hpp"
#include "os/process.hpp"
#include "pages/region.hpp"

namespace sluice::stats {
namespace {

enum Part : uint8_t { Own, Slabs, Large, Arenas, Free };
constexpr uint64_t ResidentFigures::*figure_of[] = {&ResidentFigures::own_bytes, &ResidentFigures::slab_bytes,
                                                    &ResidentFigures::large_bytes, &ResidentFigures::arena_bytes,
                                                    &ResidentFigures::free_bytes};

Part part_of(const Unit& span) noexcept {
  switch (span.use()) {
    case UnitState::Slab:
    case UnitState::Sampled:
    case UnitState::Zero:
      return Slabs;
    case UnitState::Large:  // a secure build keeps spans of freed ones
      return large::is_live(span) ? Large : Free;
    case UnitState::Guarded:
      return Large;
    case UnitState::Arena:
    case UnitState::Frame:
      return Arenas;
    case UnitState::Meta:
      return Own;
    default:
      return Free;
  }
}

}  // namespace

UnitParts::~UnitParts() {
  if (parts_ != nullptr) os::unmap_scratch(parts_, count_);
}

void UnitParts::note() noexcept {
  const size_t first = region::first_index();
  const size_t limit = region::limit();
  if (limit <= first) return;
  count_ = limit - first;
  parts_ = static_cast<uint8_t*>(os::map_scratch(count_));
  if (parts_ == nullptr) return;
  std::memset(parts_, Free, count_);  // what a fork's child has given up
  for (size_t i = region::first_span(); i < limit;) {
    const Unit& span = *region::unit_at(i);
    const size_t units = std::min(std::max<size_t>(span.units, 1), limit - i);
    std::memset(parts_ + (i - first), part_of(span), units);
    i += units;
  }
}

void UnitParts::add(ResidentFigures& figures, size_t offset, size_t bytes) const noexcept {
  while (bytes != 0) {
    const size_t in_unit = std::min(bytes, unit_size - offset % unit_size);
    figures.*figure_of[parts_[offset / unit_size]] += in_unit;
    offset += in_unit;
    bytes -= in_unit;
  }
}

}  // namespace sluice::stats
