// See spans.hpp. Other builds than secure ones link no quarantine: they compile none of the calls.
#include "pages/spans.hpp"

#include "base/options.hpp"
#include "pages/fence.hpp"
#include "pages/quarantine.hpp"
#include "pages/region.hpp"

namespace sluice::spans {
namespace {

// Calls `attempt`; where that has no result, once more when the quarantine has given back what it keeps.
template <typename Attempt>
auto insist(Attempt attempt) noexcept {
  auto got = attempt();
  if constexpr (quarantines_spans) {
    if (!got && quarantine::release_all()) got = attempt();
  }
  return got;
}

// What is longer than the heap may become is not worth emptying the quarantine for.
size_t from_region(size_t units, size_t align_units, UnitState use, region::Prefer prefer, bool* clean) noexcept {
  const auto attempt = [&] { return region::allocate(units, align_units, use, clean, prefer); };
  static_assert(unit_index_none == 0);
  return units <= options.reserve / unit_size ? insist(attempt) : attempt();
}

}  // namespace

size_t take(size_t units, UnitState use, bool huge, bool* clean) noexcept {
  bool any = false;
  if (clean == nullptr) clean = &any;
  *clean = false;
  if constexpr (quarantines_spans) {
    if (const size_t kept = quarantine::take(units + guard_units, use); kept != unit_index_none) return kept;
  }
  const region::Prefer prefer = huge ? region::Prefer::Huge : region::Prefer::Dirty;
  const size_t index = from_region(units + guard_units, 1, use, prefer, clean);
  if (huge && index != unit_index_none) region::touch_huge(index);
  if (guards_spans && index != unit_index_none) (void)region::guard(index, units * unit_size);
  return index;
}

size_t take_large(size_t units, size_t align_units, size_t bytes, region::Prefer prefer, bool* clean) noexcept {
  [[maybe_unused]] const size_t needed = guards_spans ? hardened::needed_bytes(bytes) : bytes;
  if constexpr (quarantines_spans) {
    const size_t kept = align_units == 1 ? quarantine::take(units, UnitState::Large, needed, clean) : unit_index_none;
    if (kept != unit_index_none) return kept;
  }
  const size_t index = from_region(units, align_units, UnitState::Large, prefer, clean);
  if (guards_spans && index != unit_index_none) hardened::fence(index, needed);
  return index;
}

void give_back(size_t index, bool clean) noexcept {
  if constexpr (quarantines_spans)
    quarantine::put_unused(index);
  else
    region::give_back(index, region::unit_at(index)->units, clean);
}

void give_back_large(size_t index, bool clean) noexcept {
  if constexpr (quarantines_spans)
    quarantine::put(index);
  else
    region::give_back(index, region::unit_at(index)->units, clean);
}

void* allocate_metadata(size_t bytes) noexcept {
  return insist([bytes] { return region::allocate_metadata(bytes); });
}

}  // namespace sluice::spans
