// See own_spans.hpp.
#include "heap/own_spans.hpp"

#include "base/options.hpp"
#include "os/keep_errno.hpp"
#include "os/memory.hpp"
#include "pages/purge.hpp"

namespace sluice::own_spans {
namespace {

static_assert(longest_own == FreeSpans::longest_recent);

constexpr int16_t worth_of_grant = 16;    // requests served by recent spans until more is granted…
constexpr uint16_t granted_at_once = 16;  // …units
constexpr uint64_t part_until_look = 4;   // of the purge delay, as recent spans begin to age

void give_back_list(uint32_t index) noexcept {
  while (index != unit_index_none) {
    Unit* const span = region::unit_at(index);
    index = next_own(*span);
    large::give_back(span);
  }
}

// Effects: takes the spans of a list off it that have waited since the last look; the others wait from now on. Who
// takes takes the last that came: behind one that has waited all have. Returns: the first of those taken off.
uint32_t cut_waited(uint32_t* head) noexcept {
  const uint32_t first = *head;
  if (first == unit_index_none) return first;
  if ((region::unit_at(first)->large.next_own & has_waited) != 0) {
    *head = unit_index_none;
    return first;
  }
  for (uint32_t index = first;;) {
    auto& link = region::unit_at(index)->large.next_own;
    const uint32_t next = link;
    if (next == unit_index_none || (region::unit_at(next)->large.next_own & has_waited) != 0) {
      link = unit_index_none | has_waited;
      return next;
    }
    link = next | has_waited;
    index = next;
  }
}

void give_back_waited(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock) {
  auto& own = c.own_spans;
  const Change change(c);
  size_t left = own.units.load(std::memory_order_relaxed);
  for (size_t length = 1; length <= longest_own; ++length) {
    const uint32_t old = cut_waited(&own.heads[length]);
    for (uint32_t index = old; index != unit_index_none; index = next_own(*region::unit_at(index)))
      left -= length;
    give_back_list(old);
  }
  const size_t waited = own.units.load(std::memory_order_relaxed) - left;
  own.units.store(static_cast<uint16_t>(left), std::memory_order_relaxed);
  if (!has_more_than_several(c)) return;
  region::end_grant(waited);
  own.granted = static_cast<uint16_t>(own.granted - waited);
}

}  // namespace

void note_recent(ThreadCache& c) noexcept {
  auto& own = c.own_spans;
  if (own.busy || ++own.worth < worth_of_grant) return;
  const Change change(c);
  if (own.granted == 0) own.looked_ms = static_cast<uint32_t>(os::clock_ms());
  own.node = static_cast<uint8_t>(nodes::own());
  if (region::grant_recent(granted_at_once)) own.granted = static_cast<uint16_t>(own.granted + granted_at_once);
  own.worth = 0;
}

void give_back_as_worthless(ThreadCache& c) noexcept {
  if (!c.lock.try_lock()) return;  // a signal handler must not wait, nor need anybody else
  give_back(c);
  c.lock.unlock();
}

__attribute__((noinline)) void look(ThreadCache& c) noexcept {
  auto& own = c.own_spans;
  if (own.granted == 0 || own.busy) return;
  own.node = static_cast<uint8_t>(nodes::own());
  const auto now = static_cast<uint32_t>(os::clock_ms());
  const bool may_keep =
      region::keeps_recent() && !(has_more_than_several(c) && has_several_threads.load(std::memory_order_relaxed));
  if (may_keep && now - own.looked_ms < options.purge_delay / part_until_look) return;
  if (region::mutex().held_by_this_thread() || !c.lock.try_lock()) return;
  const KeepErrno keep;
  own.looked_ms = now;
  if (may_keep) give_back_waited(c);
  if (!may_keep || own.units.load(std::memory_order_relaxed) == 0) give_back(c);
  c.lock.unlock();
}

void give_back_granted(ThreadCache& c) noexcept {
  auto& own = c.own_spans;
  if (own.busy || region::mutex().held_by_this_thread()) return;  // the latter in a signal handler
  const Change change(c);
  region::end_grant(own.granted);
  own.granted = 0;
  own.worth = 0;
  for (uint32_t& head : own.heads) {
    const uint32_t first = head;
    head = unit_index_none;
    give_back_list(first);
  }
  own.units.store(0, std::memory_order_relaxed);
}

const char* validate(const ThreadCache& c) noexcept {
  const auto& own = c.own_spans;
  size_t units = 0;
  if (own.heads[0] != unit_index_none) return "own spans: one of no length";
  for (size_t length = 1; length <= longest_own; ++length) {
    for (uint32_t i = own.heads[length]; i != unit_index_none; i = next_own(*region::unit_at(i))) {
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
