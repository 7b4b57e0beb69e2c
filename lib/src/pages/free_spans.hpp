// The free spans of the region: lists by size, with a bitmap that says which lists hold any, once for spans whose pages
// may be in memory (dirty, also by age) and once for those that read as zero (clean); and stacks of a few short dirty
// ones that were just freed (recent), which serve for their lengths again before anyone joins them with their
// neighbours. Where there are several memory nodes (nodes.hpp), each has dirty lists and stacks of its own. Open it to
// change which span is taken. All is done under the region's lock, but for what
// says otherwise; the links of the lists lie in the spans' descriptors.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"

namespace sluice {

class FreeSpans {
 public:
  static constexpr unsigned usual_search_depth = 16;  // how far into a list of mixed lengths the best fit is looked for

  static bool is_free(UnitState state) noexcept {
    return state == UnitState::FreeClean || state == UnitState::FreeDirty || state == UnitState::FreeRecent;
  }

  // Effects: adds a span and joins it with free neighbours of its kind, dirty ones of its node. `freed_at` is in ms,
  // and of no account for a clean one.
  void insert(size_t index, size_t units, bool clean, uint64_t freed_at) noexcept;
  // Effects: takes a span out of the lists. Requires: it is not recent.
  void remove(size_t index) noexcept;
  // Effects: takes the first `units` of a span out of the lists; the rest of it stays. Requires: it is not recent.
  void carve(size_t index, size_t units) noexcept { carve_within(index, index, units); }
  // Effects: takes so many units from `from` on out of the span at `index`; what lies before and behind stays.
  // Requires: as carve.
  void carve_within(size_t index, size_t from, size_t units) noexcept;

  // Returns: a span of at least `units`: the best of the first `depth` in the list of that length, or else the first of
  // the next list that has any; unit_index_none if there is none.
  size_t find_clean(size_t units, unsigned depth = usual_search_depth) const noexcept {
    return find(clean_, units, depth);
  }
  size_t find_dirty(size_t units, unsigned node) const noexcept {
    return find(at(node).dirty, units, usual_search_depth);
  }
  size_t find_any_dirty(size_t units) const noexcept;  // of whichever node

  // Where spans begin: at multiples of so many units, a power of two, of which the first unit of all lies `phase` units
  // behind one.
  struct Alignment {
    size_t units;
    size_t phase;
    // Returns: how many units are skipped from `index` on to the next such place.
    size_t skip(size_t index) const noexcept { return (0 - (index + phase)) & (units - 1); }
  };
  // Returns: a span that has `units` from an aligned unit on, the shortest of the first few of the first list where one
  // has; or none.
  size_t find_aligned_clean(size_t units, Alignment alignment) const noexcept {
    return find_aligned(clean_, units, alignment);
  }
  size_t find_aligned_dirty(size_t units, Alignment alignment, unsigned node) const noexcept {
    return find_aligned(at(node).dirty, units, alignment);
  }

  // Recent spans: `longest_recent` units each at most, and `most_recent` units in all at first (see
  // region::most_passing). They count as dirty.
  static constexpr size_t longest_recent = 16;
  static constexpr size_t most_recent = 64;
  static constexpr size_t most_granted = most_recent / 4 * 3;  // to threads that keep them, where there are several
  // Effects: puts a span on the stack of its length, and of its node. Requires: units <= longest_recent.
  void put_recent(size_t index, size_t units) noexcept;
  // Whether take_recent is worth a try, without the lock.
  bool may_have_recent(size_t units, unsigned node) const noexcept {
    return units - 1 < longest_recent && at(node).recent[units - 1].load(std::memory_order_relaxed) != unit_index_none;
  }
  // Returns: the span of so many units that was put last, no longer free; or none. Requires: as put_recent.
  size_t take_recent(size_t units, unsigned node) noexcept;
  // Returns: the span that take_recent would take. Requires: as put_recent.
  size_t last_recent(size_t units, unsigned node) const noexcept {
    return at(node).recent[units - 1].load(std::memory_order_relaxed);
  }
  // Effects: makes all of them dirty spans, or those of a node, freed now. Returns: whether there were any.
  bool settle(uint64_t now_ms) noexcept;
  bool settle(uint64_t now_ms, unsigned node) noexcept;
  size_t recent_units() const noexcept { return recent_units_; }
  size_t recent_spans(size_t units) const noexcept;  // of that length, of all nodes

  // Returns: the dirty span that was freed first, recent ones left out, or none.
  uint32_t oldest() const noexcept { return oldest_; }
  size_t clean_units() const noexcept { return clean_units_; }
  size_t dirty_units() const noexcept { return dirty_units_.load(std::memory_order_relaxed); }  // any thread may ask

  // Effects: calls act(index, units) for the longest clean spans of `units` and more that are not bare, `most` of them
  // at most. They are bare then, until they are joined with others or a part of them is taken.
  void make_bare(size_t units, unsigned most, void (*act)(size_t index, size_t units)) noexcept;

  // Effects: dirty spans are of the first node, so that all neighbours are joined.
  void forget_nodes() noexcept;

  // Effects: empties the lists without looking at what is in them.
  void forget() noexcept;

  // Returns: what is wrong with the lists, or null.
  const char* validate() const noexcept;

 private:
  static constexpr unsigned exact_bins =
      32;  // spans of 1…32 units have a list each, longer ones eight lists a doubling
  static constexpr unsigned bins = exact_bins + 8 * 24;

  struct Lists {
    uint32_t heads[bins];
    uint64_t filled[bins / 64 + 1];
  };
  struct Node {
    Lists dirty;
    std::atomic<uint32_t> recent[longest_recent];  // stacks, by length, linked by `next`
  };

  const Node& at(unsigned node) const noexcept { return node == 0 ? first_ : others_[node - 1]; }
  Node& at(unsigned node) noexcept { return node == 0 ? first_ : others_[node - 1]; }
  Node& node_of(size_t index) noexcept;
  size_t take_recent(size_t units, Node& node) noexcept;
  size_t recent_spans_of(unsigned node, size_t units) const noexcept;

  static unsigned list_index(size_t units) noexcept;
  static size_t find(const Lists& lists, size_t units, unsigned depth) noexcept;
  static size_t find_aligned(const Lists& lists, size_t units, Alignment alignment) noexcept;
  static const char* validate_span(uint32_t at, unsigned list, UnitState kind, unsigned node) noexcept;
  static const char* validate(const Lists& lists, UnitState kind, unsigned node, size_t* total) noexcept;
  const char* validate_recent(unsigned node, size_t* total) const noexcept;
  void link(size_t index, size_t units, bool clean, uint64_t freed_at) noexcept;
  void link_age(uint32_t index) noexcept;
  void unlink_age(uint32_t index) noexcept;
  void add_dirty(size_t units) noexcept { dirty_units_.store(dirty_units() + units, std::memory_order_relaxed); }

  static Node others_[most_nodes - 1];  // few processes need any
  Lists clean_{};
  Node first_{};
  uint32_t oldest_ = unit_index_none, newest_ = unit_index_none;  // dirty spans by age, of all nodes
  size_t recent_units_ = 0;                                       // as the next two, of all nodes
  size_t clean_units_ = 0;
  std::atomic<size_t> dirty_units_{0};
};

}  // namespace sluice
