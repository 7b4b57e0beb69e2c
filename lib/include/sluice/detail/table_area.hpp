// The groups of slots that a hash table's elements stand in, wherever their memory is from, and iterators over them.
// Open it to change how elements are laid out or where an element looks for room.
//
//   area   group 0 | group 1 | … | last group, which may have fewer slots behind it
//   group  16 control bytes (table_group.hpp) | 14 slots (12 of four bytes each: one cache line)
//
// An element's home is the group `hash & home_mask`. It stands in the first group from there on, cyclically, that had
// an empty slot when it came. Invariants:
//   each group from its home to the one before it has the element's bit set in `beyond`, and counts it
//   displaced() == how many elements are not at home
// On the heap the number of groups is a power of two, and each is a home. Inside an object every slot is to be used;
// the last group may have fewer, and only groups with all their slots are homes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <type_traits>

#include "sluice/detail/table_group.hpp"

namespace sluice::detail {

// How many groups there are, which of them are homes, and how many elements may be in them.
struct table_shape {
  std::size_t home_mask;
  std::size_t limit;
  std::uint32_t groups;

  friend bool operator==(const table_shape&, const table_shape&) = default;
};

template <class Value>
struct table_layout {
  static constexpr unsigned slots = sizeof(Value) == 4 ? 12 : table_group::most_slots;
  static constexpr unsigned slot_mask = (1u << slots) - 1;
  static constexpr std::size_t align = std::max(alignof(Value), table_group::bytes);
  static constexpr std::size_t header = align;
  static constexpr std::size_t stride = (header + slots * sizeof(Value) + align - 1) / align * align;
  static constexpr std::size_t line = 64;

  // Two slots of each group stay empty on average, or searches would often go on to the next one.
  static constexpr std::size_t filled = slots - 2;
  static constexpr std::size_t most_groups = std::min<std::size_t>(
      std::bit_floor(static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / stride),
      std::size_t{1} << 31);
  static constexpr std::size_t most_elements = most_groups * filled;

  // Returns: the shape of an area inside an object, which is used to the last slot.
  static constexpr table_shape inline_shape(std::size_t capacity) noexcept {
    const std::size_t whole = capacity / slots;
    return {whole == 0 ? 0 : std::bit_floor(whole) - 1, capacity,
            static_cast<std::uint32_t>(capacity == 0 ? 1 : (capacity + slots - 1) / slots)};
  }
  // Returns: the shape of an area for so many elements. Requires: elements <= most_elements.
  static constexpr table_shape shape_for(std::size_t elements) noexcept {
    if (elements <= slots) return {0, elements, 1};
    const std::size_t groups = std::bit_ceil((elements + filled - 1) / filled);
    return {groups - 1, groups * filled, static_cast<std::uint32_t>(groups)};
  }
  static constexpr std::size_t slots_of_last(const table_shape& shape) noexcept {
    const std::size_t before = (std::size_t{shape.groups} - 1) * slots;
    return shape.limit > before && shape.limit - before < slots && !is_large(shape) ? shape.limit - before : slots;
  }
  static constexpr std::size_t bytes(const table_shape& shape) noexcept {
    return (std::size_t{shape.groups} - 1) * stride + header + slots_of_last(shape) * sizeof(Value);
  }
  // Large blocks begin on a cache line, so that no group lies on more of them than it must.
  static constexpr std::size_t block_align(const table_shape& shape) noexcept {
    return shape.groups < 16 ? align : std::max(align, line);
  }

 private:
  // Whether the area is one with `filled` elements for each of a power of two of groups.
  static constexpr bool is_large(const table_shape& shape) noexcept {
    return shape.groups > 1 && shape.limit == shape.groups * filled && shape.home_mask == shape.groups - std::size_t{1};
  }
};

// An element's place: its group, its slot in the group, and how many groups are left, this one included. No place, and
// the end of an iteration: group is null, the others 0.
struct table_place {
  unsigned char* group = nullptr;
  std::uint32_t slot = 0;
  std::uint32_t left = 0;

  friend bool operator==(const table_place& a, const table_place& b) noexcept {
    return a.group == b.group && a.slot == b.slot;
  }
};

template <class Value>
Value* table_slot(unsigned char* group, std::size_t slot) noexcept {
  return reinterpret_cast<Value*>(group + table_layout<Value>::header) + slot;
}

template <class Value>
class table_area {
 public:
  using layout = table_layout<Value>;

  // Without slots.
  table_area() noexcept : table_area(nothing(), layout::inline_shape(0)) {}
  // Over memory that has been opened with the same shape, or will be.
  table_area(unsigned char* groups, const table_shape& shape) noexcept
      : groups_(groups), home_mask_(shape.home_mask), limit_(shape.limit), count_(shape.groups) {}

  // Effects: all slots are empty. Requires: no element lives.
  void open() noexcept {
    displaced_ = 0;
    if (limit_ == 0) return;
    unsigned char* group = groups_;
    for (std::uint32_t i = 0; i < count_; ++i, group += layout::stride)
      std::memset(group, table_group::empty, table_group::bytes);
    unsigned char* const last = group - layout::stride;
    for (std::size_t i = layout::slots_of_last(shape()); i < layout::slots; ++i)
      last[i] = table_group::closed;
  }

  unsigned char* groups() const noexcept { return groups_; }
  table_shape shape() const noexcept { return {home_mask_, limit_, count_}; }
  std::size_t limit() const noexcept { return limit_; }
  std::size_t displaced() const noexcept { return displaced_; }
  void set_displaced(std::size_t displaced) noexcept { displaced_ = displaced; }

  static Value* at(const table_place& place) noexcept { return table_slot<Value>(place.group, place.slot); }

  // Returns: where the element is for which is_it(element), or no place. Throws: what is_it throws.
  template <class IsIt>
  table_place find(std::uint64_t hash, IsIt is_it) const {
    const table_group::pattern pattern = table_group::pattern_of(hash);
    const std::size_t home = hash & home_mask_;
    std::size_t index = home;
    do {
      unsigned char* const group = groups_ + index * layout::stride;
      unsigned candidates = table_group::matches(group, pattern) & layout::slot_mask;
      while (candidates != 0) {
        const auto slot = static_cast<std::uint32_t>(std::countr_zero(candidates));
        if (is_it(*table_slot<Value>(group, slot))) [[likely]]
          return {group, slot, static_cast<std::uint32_t>(count_ - index)};
        candidates &= candidates - 1;
      }
      if (!table_group::goes_on(group, hash)) [[likely]]
        return {};
      if (++index == count_) index = 0;
    } while (index != home);
    return {};
  }

  // Returns: the place for a new element. Requires: fewer elements than limit() are here.
  table_place room_for(std::uint64_t hash) const noexcept {
    std::size_t index = hash & home_mask_;
    for (;;) {
      unsigned char* const group = groups_ + index * layout::stride;
      const unsigned empties = table_group::empties(group) & layout::slot_mask;
      if (empties != 0) [[likely]]
        return {group, static_cast<std::uint32_t>(std::countr_zero(empties)),
                static_cast<std::uint32_t>(count_ - index)};
      if (++index == count_) index = 0;
    }
  }

  // Effects: the element that has been made there counts. Requires: the place is from room_for.
  void occupy(const table_place& place, std::uint64_t hash) noexcept {
    table_group::set(place.group, place.slot, table_group::mark_of(hash));
    if (place.group == home(hash)) [[likely]]
      return;
    ++displaced_;
    each_before(place.group, hash, [hash](unsigned char* group) { table_group::pass(group, hash); });
  }
  // Effects: the place of an element, which has been destroyed or will be, is empty. Requires: the element's hash; any
  // will do when no element is displaced.
  void vacate(const table_place& place, std::uint64_t hash) noexcept {
    table_group::set(place.group, place.slot, table_group::empty);
    if (displaced_ == 0 || place.group == home(hash)) [[likely]]
      return;
    --displaced_;
    each_before(place.group, hash, [](unsigned char* group) { table_group::unpass(group); });
  }

  table_place first() const noexcept {
    if (groups_[0] >= table_group::lowest_mark) return {groups_, 0, count_};
    return first_from(groups_, count_);
  }
  static table_place next(const table_place& place) noexcept {
    const unsigned rest = table_group::taken(place.group) & layout::slot_mask & (~1u << place.slot);
    if (rest != 0) return {place.group, static_cast<std::uint32_t>(std::countr_zero(rest)), place.left};
    return first_from(place.group + layout::stride, place.left - 1);
  }

  // Effects: visit(place) for each element, in the order of iteration. It may vacate the place.
  template <class Visit>
  void for_each(Visit visit) const {
    unsigned char* group = groups_;
    for (std::uint32_t left = count_; left != 0; --left, group += layout::stride) {
      for (unsigned rest = table_group::taken(group) & layout::slot_mask; rest != 0; rest &= rest - 1)
        visit(table_place{group, static_cast<std::uint32_t>(std::countr_zero(rest)), left});
    }
  }

  void destroy_elements() noexcept {
    if constexpr (!std::is_trivially_destructible_v<Value>)
      for_each([](const table_place& place) { std::destroy_at(at(place)); });
  }

 private:
  // Not seen through by the compiler, which would warn of reading slots behind it, where no search finds one.
  static unsigned char* nothing() noexcept {
    auto* groups = const_cast<unsigned char*>(no_slots);
    __asm__("" : "+r"(groups));
    return groups;
  }
  unsigned char* home(std::uint64_t hash) const noexcept { return groups_ + (hash & home_mask_) * layout::stride; }

  static table_place first_from(unsigned char* group, std::uint32_t left) noexcept {
    for (; left != 0; --left, group += layout::stride) {
      const unsigned taken = table_group::taken(group) & layout::slot_mask;
      if (taken != 0) return {group, static_cast<std::uint32_t>(std::countr_zero(taken)), left};
    }
    return {};
  }
  template <class Visit>
  void each_before(const unsigned char* end, std::uint64_t hash, Visit visit) noexcept {
    std::size_t index = hash & home_mask_;
    for (unsigned char* group = home(hash); group != end;) {
      visit(group);
      if (++index == count_) index = 0;
      group = groups_ + index * layout::stride;
    }
  }

  unsigned char* groups_;
  std::size_t home_mask_;
  std::size_t limit_;
  std::size_t displaced_ = 0;
  std::uint32_t count_;
};

// Any insertion that makes the table grow invalidates it; an erasure, if it is of this element.
//
// Each slot is looked at when its turn comes, since it may have been erased or filled by then. A group's elements stand
// in its first slots, except where some were erased, so that the next slot is mostly the next element's.
template <class Value, bool Constant>
class table_iterator {
  using layout = table_layout<Value>;

 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = Value;
  using difference_type = std::ptrdiff_t;
  using reference = std::conditional_t<Constant, const Value&, Value&>;
  using pointer = std::conditional_t<Constant, const Value*, Value*>;

  table_iterator() = default;
  explicit table_iterator(const table_place& place) noexcept
      : group_(place.group), slot_(place.slot), left_(place.left) {}
  template <bool Other>
  requires(Constant && !Other) table_iterator(const table_iterator<Value, Other>& other)
  noexcept  // NOLINT: an iterator is a const_iterator
      : group_(other.group_), slot_(other.slot_), left_(other.left_) {}

  reference operator*() const noexcept { return *table_slot<Value>(group_, slot_); }
  pointer operator->() const noexcept { return table_slot<Value>(group_, slot_); }
  table_iterator& operator++() noexcept {
    ++slot_;
    // Where there are control bytes that no slot has, they are as those of empty slots.
    if ((layout::slots == table_group::most_slots && slot_ == layout::slots) ||
        group_[slot_] < table_group::lowest_mark)
      find_next();
    return *this;
  }
  table_iterator operator++(int) noexcept {
    const table_iterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const table_iterator& a, const table_iterator& b) noexcept {
    return a.group_ == b.group_ && a.slot_ == b.slot_;
  }

  table_place place() const noexcept { return {group_, static_cast<std::uint32_t>(slot_), left_}; }

 private:
  template <class, bool>
  friend class table_iterator;

  void find_next() noexcept {
    // A closed slot has none behind it: the room inside an object that is full needs no second look.
    const bool closed = slot_ != layout::slots && group_[slot_] == table_group::closed;
    unsigned rest = closed ? 0 : table_group::taken(group_) & layout::slot_mask & (~0u << slot_);
    while (rest == 0) {
      if (closed || --left_ == 0) {
        *this = table_iterator();
        return;
      }
      group_ += layout::stride;
      rest = table_group::taken(group_) & layout::slot_mask;
    }
    slot_ = static_cast<std::size_t>(std::countr_zero(rest));
  }

  unsigned char* group_ = nullptr;
  std::size_t slot_ = 0;
  std::uint32_t left_ = 0;
};

}  // namespace sluice::detail
