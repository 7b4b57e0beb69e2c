// See free_spans.hpp.
#include "pages/free_spans.hpp"

#include <bit>

#include "os/seldom_touched.hpp"
#include "pages/nodes.hpp"
#include "pages/units.hpp"

namespace sluice {
namespace {

unsigned node_count() noexcept {
  return nodes::count.load(std::memory_order_relaxed);
}

__attribute__((cold)) bool are_of_one_node(size_t index, size_t other) noexcept {
  return nodes::of(index) == nodes::of(other);
}

// Marks what is taken out of a span, and what is left behind that.
__attribute__((cold)) void mark_parts(size_t span, size_t from, size_t units) noexcept {
  const unsigned node = nodes::of(span);
  nodes::set(from, node);
  if (from + units < span + region_units[span].units) nodes::set(from + units, node);
}

// Whether two neighbours of the same kind are to be one span.
bool may_join(size_t index, size_t other, bool clean) noexcept {
  return clean || !nodes::are_several() || are_of_one_node(index, other);
}

}  // namespace

SLUICE_SELDOM_TOUCHED constinit FreeSpans::Node FreeSpans::others_[most_nodes - 1]{};

// Without a call: who calls this needs no registers to be saved then.
inline FreeSpans::Node& FreeSpans::node_of(size_t index) noexcept {
  return nodes::are_several() ? at(region::node_mark_of(index)) : first_;
}

unsigned FreeSpans::list_index(size_t units) noexcept {
  if (units <= exact_bins) return static_cast<unsigned>(units) - 1;
  const unsigned width = static_cast<unsigned>(std::bit_width(units));
  const unsigned eighth = static_cast<unsigned>(units >> (width - 4)) & 7;
  const unsigned index = exact_bins + (width - 6) * 8 + eighth;
  return index < bins ? index : bins - 1;
}

void FreeSpans::link_age(uint32_t index) noexcept {
  Unit& u = region_units[index];
  // What is left of the oldest span stays the oldest. What is left of another one goes to the end and keeps its time:
  // but for the oldest span the list is only nearly in order.
  if (oldest_ != unit_index_none && u.free.freed_at < region_units[oldest_].free.freed_at) {
    u.free.older = unit_index_none;
    u.free.newer = oldest_;
    region_units[oldest_].free.older = index;
    oldest_ = index;
    return;
  }
  u.free.older = newest_;
  u.free.newer = unit_index_none;
  (newest_ != unit_index_none ? region_units[newest_].free.newer : oldest_) = index;
  newest_ = index;
}

void FreeSpans::unlink_age(uint32_t index) noexcept {
  Unit& u = region_units[index];
  (u.free.older != unit_index_none ? region_units[u.free.older].free.newer : oldest_) = u.free.newer;
  (u.free.newer != unit_index_none ? region_units[u.free.newer].free.older : newest_) = u.free.older;
}

// Adds a span to the lists without looking at its neighbours.
void FreeSpans::link(size_t index, size_t units, bool clean, uint64_t freed_at) noexcept {
  Unit& head = region_units[index];
  Unit& tail = region_units[index + units - 1];
  head.set_use(clean ? UnitState::FreeClean : UnitState::FreeDirty);
  tail.set_use(head.use());
  head.units = tail.units = static_cast<uint32_t>(units);
  Lists& lists = clean ? clean_ : node_of(index).dirty;
  const unsigned list = list_index(units);
  head.free.prev = unit_index_none;
  head.free.bare = false;
  head.free.next = lists.heads[list];
  if (head.free.next != unit_index_none) region_units[head.free.next].free.prev = static_cast<uint32_t>(index);
  lists.heads[list] = static_cast<uint32_t>(index);
  lists.filled[list / 64] |= uint64_t{1} << (list % 64);
  if (clean) {
    clean_units_ += units;
  } else {
    head.free.freed_at = freed_at;
    link_age(static_cast<uint32_t>(index));
    add_dirty(units);
  }
}

void FreeSpans::remove(size_t index) noexcept {
  Unit& head = region_units[index];
  const bool clean = head.use() == UnitState::FreeClean;
  Lists& lists = clean ? clean_ : node_of(index).dirty;
  const unsigned list = list_index(head.units);
  if (head.free.next != unit_index_none) region_units[head.free.next].free.prev = head.free.prev;
  if (head.free.prev != unit_index_none) {
    region_units[head.free.prev].free.next = head.free.next;
  } else {
    lists.heads[list] = head.free.next;
    if (head.free.next == unit_index_none) lists.filled[list / 64] &= ~(uint64_t{1} << (list % 64));
  }
  if (clean) {
    clean_units_ -= head.units;
  } else {
    unlink_age(static_cast<uint32_t>(index));
    add_dirty(size_t{0} - head.units);
  }
}

void FreeSpans::insert(size_t index, size_t units, bool clean, uint64_t freed_at) noexcept {
  const UnitState kind = clean ? UnitState::FreeClean : UnitState::FreeDirty;
  if (index > region::first_index() && region_units[index - 1].use() == kind) {
    const size_t left = index - region_units[index - 1].units;
    if (may_join(left, index, clean)) {
      remove(left);
      units += index - left;
      index = left;
    }
  }
  const size_t after = index + units;
  if (after < region::limit() && region_units[after].use() == kind && may_join(index, after, clean)) {
    remove(after);
    units += region_units[after].units;
  }
  link(index, units, clean, freed_at);
}

size_t FreeSpans::find(const Lists& lists, size_t units, unsigned search_depth) noexcept {
  const unsigned list = list_index(units);
  size_t best = unit_index_none;
  unsigned depth = 0;
  for (uint32_t i = lists.heads[list]; i != unit_index_none && depth < search_depth;
       i = region_units[i].free.next, ++depth) {
    const size_t length = region_units[i].units;
    if (length >= units && (best == unit_index_none || length < region_units[best].units)) best = i;
    if (length == units) break;
  }
  if (best != unit_index_none) return best;
  for (unsigned next = list + 1; next < bins;) {
    const uint64_t word = lists.filled[next / 64] >> (next % 64);
    if (word != 0) return lists.heads[next + static_cast<unsigned>(std::countr_zero(word))];
    next = (next / 64 + 1) * 64;
  }
  return unit_index_none;
}

size_t FreeSpans::find_any_dirty(size_t units) const noexcept {
  for (unsigned node = 0; node < node_count(); ++node)
    if (const size_t index = find_dirty(units, node); index != unit_index_none) return index;
  return unit_index_none;
}

size_t FreeSpans::find_aligned(const Lists& lists, size_t units, Alignment alignment) noexcept {
  for (unsigned list = list_index(units); list < bins; ++list) {
    const uint64_t word = lists.filled[list / 64] >> (list % 64);
    if (word == 0) {
      list |= 63;
      continue;
    }
    list += static_cast<unsigned>(std::countr_zero(word));
    size_t best = unit_index_none;
    unsigned depth = 0;
    for (uint32_t i = lists.heads[list]; i != unit_index_none && depth < usual_search_depth;
         i = region_units[i].free.next, ++depth) {
      const size_t length = region_units[i].units;
      const size_t skip = alignment.skip(i);
      if (length < units || length - units < skip) continue;
      if (best == unit_index_none || length < region_units[best].units) best = i;
    }
    if (best != unit_index_none) return best;
  }
  return unit_index_none;
}

void FreeSpans::carve_within(size_t index, size_t from, size_t units) noexcept {
  Unit& head = region_units[index];
  const size_t end = index + head.units;
  const bool clean = head.use() == UnitState::FreeClean;
  const uint64_t freed_at = clean ? 0 : head.free.freed_at;
  remove(index);
  if (nodes::are_several()) mark_parts(index, from, units);
  if (from > index) link(index, from - index, clean, freed_at);
  if (from + units < end) link(from + units, end - from - units, clean, freed_at);
}

void FreeSpans::put_recent(size_t index, size_t units) noexcept {
  Unit& head = region_units[index];
  region_units[index + units - 1].set_use(UnitState::FreeRecent);
  head.set_use(UnitState::FreeRecent);
  head.units = static_cast<uint32_t>(units);
  std::atomic<uint32_t>& top = node_of(index).recent[units - 1];
  head.free.next = top.load(std::memory_order_relaxed);
  top.store(static_cast<uint32_t>(index), std::memory_order_relaxed);
  recent_units_ += units;
  add_dirty(units);
}

size_t FreeSpans::take_recent(size_t units, unsigned node) noexcept {
  return take_recent(units, at(node));
}

inline size_t FreeSpans::take_recent(size_t units, Node& node) noexcept {
  std::atomic<uint32_t>& top = node.recent[units - 1];
  const size_t index = top.load(std::memory_order_relaxed);
  static_assert(unit_index_none == 0);  // as the stacks are at first
  if (index == unit_index_none) return index;
  top.store(region_units[index].free.next, std::memory_order_relaxed);
  recent_units_ -= units;
  add_dirty(size_t{0} - units);
  return index;
}

size_t FreeSpans::recent_spans_of(unsigned node, size_t units) const noexcept {
  size_t count = 0;
  for (size_t i = last_recent(units, node); i != unit_index_none; i = region_units[i].free.next)
    ++count;
  return count;
}

size_t FreeSpans::recent_spans(size_t units) const noexcept {
  size_t count = recent_spans_of(0, units);
  for (unsigned node = 1; node < node_count(); ++node)
    count += recent_spans_of(node, units);
  return count;
}

bool FreeSpans::settle(uint64_t now_ms, unsigned own_node) noexcept {
  Node& node = at(own_node);
  bool any = false;
  for (size_t units = 1; units <= longest_recent; ++units) {
    uint32_t bottom = unit_index_none;  // the stack, turned over: what was freed first is the older one
    for (size_t index; (index = take_recent(units, node)) != unit_index_none; bottom = static_cast<uint32_t>(index))
      region_units[index].free.next = bottom;
    any = any || bottom != unit_index_none;
    while (bottom != unit_index_none) {
      const size_t index = bottom;
      bottom = region_units[index].free.next;
      insert(index, units, false, now_ms);
    }
  }
  return any;
}

bool FreeSpans::settle(uint64_t now_ms) noexcept {
  bool any = false;
  for (unsigned node = 0; node < node_count(); ++node)
    any = settle(now_ms, node) || any;
  return any;
}

void FreeSpans::make_bare(size_t units, unsigned most, void (*act)(size_t, size_t)) noexcept {
  for (unsigned list = bins; list-- > list_index(units) && most != 0;)
    for (uint32_t i = clean_.heads[list]; i != unit_index_none && most != 0; i = region_units[i].free.next) {
      if (region_units[i].free.bare || region_units[i].units < units) continue;
      act(i, region_units[i].units);
      region_units[i].free.bare = true;
      --most;
    }
}

void FreeSpans::forget_nodes() noexcept {
  for (unsigned node = 1; node < node_count(); ++node)
    for (size_t index; (index = find_dirty(1, node)) != unit_index_none;) {
      const uint64_t freed_at = region_units[index].free.freed_at;
      const size_t units = region_units[index].units;
      remove(index);
      nodes::set(index, 0);
      insert(index, units, false, freed_at);
    }
}

void FreeSpans::forget() noexcept {
  for (unsigned node = 0; node < node_count(); ++node) {
    for (std::atomic<uint32_t>& top : at(node).recent)
      top.store(unit_index_none, std::memory_order_relaxed);
    at(node).dirty = {};
  }
  recent_units_ = 0;
  clean_ = {};
  oldest_ = newest_ = unit_index_none;
  clean_units_ = 0;
  dirty_units_.store(0, std::memory_order_relaxed);
}

const char* FreeSpans::validate_span(uint32_t at, unsigned list, UnitState kind, unsigned node) noexcept {
  const Unit& head = region_units[at];
  const bool clean = kind == UnitState::FreeClean;
  if (head.use() != kind) return "region: free span is damaged";
  if (!clean && nodes::of(at) != node) return "region: free span of another memory node";
  if (list_index(head.units) != list) return "region: free span in the wrong list";
  const Unit& tail = region_units[at + head.units - 1];
  if (tail.use() != kind || tail.units != head.units) return "region: ends of a free span differ";
  const size_t after = at + head.units;
  if (after < region::limit() && region_units[after].use() == kind && may_join(at, after, clean))
    return "region: free spans not joined";
  for (size_t u = at; u < after; ++u)
    if (class_bytes()[u] != class_byte_none) return "region: free unit with a class";
  return nullptr;
}

const char* FreeSpans::validate(const Lists& lists, UnitState kind, unsigned node, size_t* total) noexcept {
  for (unsigned list = 0; list < bins; ++list) {
    const bool filled = (lists.filled[list / 64] >> (list % 64) & 1) != 0;
    if (filled != (lists.heads[list] != unit_index_none)) return "region: bitmap and list differ";
    uint32_t prev = unit_index_none;
    for (uint32_t i = lists.heads[list]; i != unit_index_none; i = region_units[i].free.next) {
      const Unit& head = region_units[i];
      if (head.free.prev != prev) return "region: free span is damaged";
      if (const char* const wrong = validate_span(i, list, kind, node)) return wrong;
      *total += head.units;
      prev = i;
    }
  }
  return nullptr;
}

const char* FreeSpans::validate_recent(unsigned node, size_t* total) const noexcept {
  for (size_t units = 1; units <= longest_recent; ++units) {
    for (size_t i = last_recent(units, node); i != unit_index_none; i = region_units[i].free.next) {
      const Unit& head = region_units[i];
      if (head.use() != UnitState::FreeRecent || head.units != units ||
          region_units[i + units - 1].use() != UnitState::FreeRecent)
        return "region: recent span is damaged";
      if (nodes::of(i) != node) return "region: recent span of another memory node";
      for (size_t u = i; u < i + units; ++u)
        if (class_bytes()[u] != class_byte_none) return "region: free unit with a class";
      *total += units;
      if (*total > recent_units_) break;
    }
  }
  return nullptr;
}

const char* FreeSpans::validate() const noexcept {
  size_t clean = 0;
  size_t dirty = 0;
  size_t recent = 0;
  for (unsigned node = 0; node < node_count(); ++node) {
    if (const char* const wrong = validate_recent(node, &recent)) return wrong;
    if (const char* const wrong = validate(at(node).dirty, UnitState::FreeDirty, node, &dirty)) return wrong;
  }
  if (const char* const wrong = validate(clean_, UnitState::FreeClean, 0, &clean)) return wrong;
  if (recent != recent_units_) return "region: recent units miscounted";
  return clean == clean_units_ && dirty + recent == dirty_units() ? nullptr : "region: free units miscounted";
}

}  // namespace sluice
