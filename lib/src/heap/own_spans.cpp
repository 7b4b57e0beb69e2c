// See own_spans.hpp.
#include "heap/own_spans.hpp"

#include "pages/free_spans.hpp"

namespace sluice::own_spans {
namespace {

static_assert(longest_own == FreeSpans::longest_recent);

constexpr int16_t worth_of_grant = 16;    // requests served by recent spans until more is granted…
constexpr uint16_t granted_at_once = 16;  // …units
constexpr int16_t cost_of_other = 2;      // of such requests one that had to be served by another span takes back
constexpr int16_t least_worth = -8;       // when all goes back

}  // namespace

void note_recent(ThreadCache& c) noexcept {
  auto& own = c.own_spans;
  if (++own.worth < worth_of_grant) return;
  if (region::grant_recent(granted_at_once)) own.granted = static_cast<uint16_t>(own.granted + granted_at_once);
  own.worth = 0;
}

void note_other(ThreadCache& c) noexcept {
  auto& own = c.own_spans;
  if (own.worth > least_worth) {
    own.worth = static_cast<int16_t>(own.worth - cost_of_other);
  } else if (own.granted != 0) {
    const MutexLock<OwnerMutex> held(c.lock);
    give_back(c);
  }
}

void give_back(ThreadCache& c) noexcept {
  auto& own = c.own_spans;
  if (own.granted == 0 || region::mutex().held_by_this_thread()) return;  // the latter in a signal handler
  region::end_grant(own.granted);
  own.granted = 0;  // a signal handler that comes from here on keeps none
  own.worth = 0;
  for (uint32_t& head : own.heads) {
    uint32_t index = head;
    head = unit_index_none;
    while (index != unit_index_none) {
      Unit* const span = region::unit_at(index);
      index = span->large.next_own;
      large::give_back(span);
    }
  }
  own.units.store(0, std::memory_order_relaxed);
}

const char* validate(const ThreadCache& c) noexcept {
  const auto& own = c.own_spans;
  size_t units = 0;
  if (own.heads[0] != unit_index_none) return "own spans: one of no length";
  for (size_t length = 1; length <= longest_own; ++length) {
    for (uint32_t i = own.heads[length]; i != unit_index_none; i = region::unit_at(i)->large.next_own) {
      const Unit& span = *region::unit_at(i);
      if (span.use() != UnitState::Large || span.units != length) return "own spans: wrong span";
      if (large::is_live(span)) return "own spans: a block lives in one";
      units += length;
      if (units > own.granted) return "own spans: more than granted";
    }
  }
  return units == own.units.load(std::memory_order_relaxed) ? nullptr : "own spans: units miscounted";
}

}  // namespace sluice::own_spans
