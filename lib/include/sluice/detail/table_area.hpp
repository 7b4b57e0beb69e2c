// The groups of slots that a hash table's elements stand in, wherever their memory is from, and iterators over them.
// Open it to change how elements are laid out or where an element looks for room.
//
//   area   group 0 | group 1 | … | last group, which may have fewer slots behind it
//   group  16 control bytes (table_group.hpp) | 13 slots (12 of four bytes each: one cache line)
//
// An element's home is one of the first groups, chosen by the low bits of its hash. It stands in the first group from
// there on, cyclically, that had an empty slot when it came. Invariants:
//   each group from its home to the one before it has the element's bit set in `beyond`, and counts it
//   displaced() == how many elements are not at home
// After something has thrown, the counts and displaced() may be higher than that, until the area is opened again.
// On the heap the number of groups is a power of two, and each is a home. Inside an object every slot is to be used;
// the last group may have fewer, and then is a home only if it is the only one.
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
#include <utility>

#include "sluice/detail/table_group.hpp"

namespace sluice::detail {

// How many groups there are, which of them are homes, and how many elements may be in them.
struct table_shape {
  std::uint32_t homes;
  std::size_t limit;
  std::uint32_t groups;

  friend bool operator==(const table_shape&, const table_shape&) = default;
};

template <class Value>
struct table_layout {
  static constexpr unsigned slots = sizeof(Value) == 4 ? 12 : table_group::most_slots;
  static constexpr unsigned slot_mask = ((1u << slots) - 1) << table_group::first_slot;
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
    return {whole == 0 ? 1 : static_cast<std::uint32_t>(whole), capacity,
            static_cast<std::uint32_t>(capacity == 0 ? 1 : (capacity + slots - 1) / slots)};
  }
  // Returns: the shape of an area for so many elements. Requires: elements <= most_elements.
  static constexpr table_shape shape_for(std::size_t elements) noexcept {
    if (elements <= slots) return {1, elements, 1};
    const std::size_t groups = std::bit_ceil((elements + filled - 1) / filled);
    return {static_cast<std::uint32_t>(groups), groups * filled, static_cast<std::uint32_t>(groups)};
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
    return shape.groups > 1 && shape.limit == shape.groups * filled && shape.homes == shape.groups;
  }
};

// Raw room for an element or a table inside an object.
template <std::size_t Bytes, std::size_t Align>
struct table_room {
  alignas(Align) unsigned char bytes[Bytes];
  unsigned char* start() noexcept { return bytes; }
};
template <std::size_t Align>
struct table_room<0, Align> {
  unsigned char* start() noexcept { return nullptr; }
};

// An element's place. None: the group is null. That the group does not depend on the slot matters to a processor, which
// knows early where it writes.
template <class Value>
struct table_place {
  explicit operator bool() const noexcept { return group != nullptr; }
  unsigned char& mark() const noexcept { return group[slot]; }
  // Slots are numbered as their control bytes are.
  Value* element() const noexcept {
    return reinterpret_cast<Value*>(group + table_layout<Value>::header) + slot - table_group::first_slot;
  }

  unsigned char* group = nullptr;
  std::size_t slot = 0;
};

template <class Value>
class table_area {
 public:
  using layout = table_layout<Value>;
  using place = table_place<Value>;

  // Without slots.
  table_area() noexcept : table_area(nothing(), layout::inline_shape(0)) {}
  // Over memory that has been opened with the same shape, or will be.
  table_area(unsigned char* groups, const table_shape& shape) noexcept
      : groups_(groups),
        home_mask_(std::has_single_bit(shape.homes) ? shape.homes - 1 : 0),
        limit_(shape.limit),
        count_(shape.groups),
        homes_(shape.homes) {}

  // Effects: all slots are empty. Requires: no element lives.
  void open() noexcept {
    displaced_ = 0;
    if (limit_ == 0) return;
    unsigned char* group = groups_;
    for (std::uint32_t i = 1; i < count_; ++i, group += layout::stride)
      table_group::open(group);
    table_group::open_last(group, layout::slots_of_last(shape()));
  }

  unsigned char* groups() const noexcept { return groups_; }
  table_shape shape() const noexcept { return {homes_, limit_, count_}; }
  std::size_t limit() const noexcept { return limit_; }
  std::size_t displaced() const noexcept { return displaced_; }
  void set_displaced(std::size_t displaced) noexcept { displaced_ = displaced; }

  // Returns: where the element is for which is_it(element), or no place. Throws: what is_it throws.
  template <class IsIt>
  place find(std::uint64_t hash, IsIt is_it) const {
    const table_group::pattern pattern = table_group::pattern_of(hash);
    unsigned char* const first = home(hash);
    unsigned char* group = first;
    do {
      unsigned candidates = table_group::matches(group, pattern) & layout::slot_mask;
      while (candidates != 0) {
        const place candidate{group, static_cast<unsigned>(std::countr_zero(candidates))};
        if (is_it(*candidate.element())) [[likely]]
          return candidate;
        candidates &= candidates - 1;
      }
      if (!table_group::goes_on(group, hash)) [[likely]]
        return {};
      group = behind(group);
    } while (group != first);
    return {};
  }

  // Returns: the place for a new element. Requires: fewer elements than limit() are here.
  place room_for(std::uint64_t hash) const noexcept {
    for (unsigned char* group = home(hash);; group = behind(group)) {
      const unsigned empties = table_group::empties(group) & layout::slot_mask;
      if (empties != 0) [[likely]]
        return {group, static_cast<unsigned>(std::countr_zero(empties))};
    }
  }

  // Returns: the same, for the number of elements that are here. In one group without holes they are its first slots:
  // insertions one after another do not wait for the control bytes that the one before has written.
  place room_for(std::uint64_t hash, std::size_t size) const noexcept {
    if (count_ == 1 && groups_[table_group::first_slot + size] == table_group::fresh_end)
      return {groups_, table_group::first_slot + size};
    return room_for(hash);
  }

  // Effects: the element that has been made there counts. Requires: the place is from room_for.
  void occupy(const place& at, std::uint64_t hash) noexcept {
    table_group::set(at.group, at.slot, table_group::pattern_of(hash));
    if (at.group == home(hash)) [[likely]]
      return;
    ++displaced_;
    each_before(at.group, hash, [hash](unsigned char* passed) { table_group::pass(passed, hash); });
  }
  // Effects: the place of an element, which has been destroyed or will be, is empty. Requires: the element's hash; any
  // will do when no element is displaced.
  void vacate(const place& at, std::uint64_t hash) noexcept {
    table_group::empty(at.group, at.slot);
    if (displaced_ == 0 || at.group == home(hash)) [[likely]]
      return;
    --displaced_;
    each_before(at.group, hash, [](unsigned char* passed) { table_group::unpass(passed); });
  }

  // Effects: visit(place) for each element, in the order of iteration. It may vacate the place.
  template <class Visit>
  void for_each(Visit visit) const {
    unsigned char* group = groups_;
    for (std::uint32_t left = count_; left != 0; --left, group += layout::stride) {
      for (unsigned rest = table_group::taken(group) & layout::slot_mask; rest != 0; rest &= rest - 1)
        visit(place{group, static_cast<unsigned>(std::countr_zero(rest))});
    }
  }

  void destroy_elements() noexcept {
    if constexpr (!std::is_trivially_destructible_v<Value>)
      for_each([](const place& at) { std::destroy_at(at.element()); });
  }

  // Effects: each element goes to the same slot of the other area. Requires: both have the same shape, and Kind's
  // elements are moved without throwing.
  template <class Kind>
  void exchange_slots(table_area& other) noexcept {
    unsigned char* own = groups_;
    unsigned char* others = other.groups_;
    table_room<sizeof(Value), alignof(Value)> room;
    auto* const beside = reinterpret_cast<Value*>(room.start());
    for (std::uint32_t left = limit_ == 0 ? 0 : count_; left != 0; --left) {
      const unsigned here = table_group::taken(own) & layout::slot_mask;
      const unsigned there = table_group::taken(others) & layout::slot_mask;
      for (std::size_t slot = table_group::first_slot; slot < table_group::first_slot + layout::slots; ++slot) {
        Value* const a = place{own, slot}.element();
        Value* const b = place{others, slot}.element();
        if ((here >> slot & 1) != 0) Kind::relocate(beside, a);
        if ((there >> slot & 1) != 0) Kind::relocate(a, b);
        if ((here >> slot & 1) != 0) Kind::relocate(b, beside);
      }
      std::swap_ranges(own, own + table_group::bytes, others);
      own += layout::stride;
      others += layout::stride;
    }
    std::swap(displaced_, other.displaced_);
  }

 private:
  // Not seen through by the compiler, which would warn of reading slots behind it, where no search finds one.
  static unsigned char* nothing() noexcept {
    auto* groups = const_cast<unsigned char*>(opened_last.of[0].byte);
    __asm__("" : "+r"(groups));
    return groups;
  }
  unsigned char* home(std::uint64_t hash) const noexcept {
    // One home, as most tables inside an object have, is read without waiting for the hash.
    if (homes_ == 1) return groups_;
    if (home_mask_ != 0) return groups_ + (hash & home_mask_) * layout::stride;
    return groups_ + ((hash & 0xffffffff) * homes_ >> 32) * layout::stride;
  }
  unsigned char* behind(unsigned char* group) const noexcept {
    return table_group::is_last(group) ? groups_ : group + layout::stride;
  }

  template <class Visit>
  void each_before(const unsigned char* end, std::uint64_t hash, Visit visit) noexcept {
    for (unsigned char* group = home(hash); group != end; group = behind(group))
      visit(group);
  }

  unsigned char* groups_;
  std::size_t home_mask_;  // if the number of homes is a power of two, else 0
  std::size_t limit_;
  std::size_t displaced_ = 0;
  std::uint32_t count_;
  std::uint32_t homes_;
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
  explicit table_iterator(const table_place<Value>& place) noexcept
      : mark_(place ? &place.mark() : nullptr), element_(place ? place.element() : nullptr) {}
  template <bool Other>
  requires(Constant && !Other) table_iterator(const table_iterator<Value, Other>& other)
  noexcept  // NOLINT: an iterator is a const_iterator
      : mark_(other.mark_), element_(other.element_) {}
  // Returns: at the first element of the groups from this one on.
  static table_iterator first(unsigned char* group) noexcept {
    if (group[table_group::first_slot] >= table_group::lowest_mark) [[likely]]
      return table_iterator(group, table_group::first_slot);
    return behind(group + table_group::first_slot);
  }

  reference operator*() const noexcept { return *element_; }
  pointer operator->() const noexcept { return element_; }
  table_iterator& operator++() noexcept {
    ++mark_;
    // Or compilers keep both the mark before and this one, which is two instructions more for each element.
    __asm__("" : "+r"(mark_));
    ++element_;
    if (*mark_ < table_group::lowest_mark) [[unlikely]]
      *this = behind(mark_);
    return *this;
  }
  table_iterator operator++(int) noexcept {
    const table_iterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const table_iterator& a, const table_iterator& b) noexcept { return a.element_ == b.element_; }

  // Requires: it is at an element.
  table_place<Value> place() const noexcept {
    const std::size_t slot = slot_of(mark_);
    return {mark_ - slot, slot};
  }

 private:
  template <class, bool>
  friend class table_iterator;

  table_iterator(unsigned char* group, std::size_t slot) noexcept
      : mark_(group + slot), element_(table_place<Value>{group, slot}.element()) {}

  // Returns: the next element behind a slot without one.
  static table_iterator behind(unsigned char* mark) noexcept {
    // What follows is to be computed here, and not for each element.
    __asm__("" : "+r"(mark));
    const unsigned char value = *mark;
    if (table_group::ends(value)) return {};
    const std::size_t slot = slot_of(mark);
    unsigned char* group = mark - slot;
    unsigned taken = value == table_group::hole ? taken_of(group) & (~0u << slot) : 0;
    while (taken == 0) {
      if (table_group::is_last(group)) return {};
      group += layout::stride;
      const unsigned char first = group[table_group::first_slot];
      // Not from the mask, which would take longer to be known.
      if (first >= table_group::lowest_mark) return table_iterator(group, table_group::first_slot);
      if (first == table_group::hole) taken = taken_of(group);
    }
    return table_iterator(group, static_cast<unsigned>(std::countr_zero(taken)));
  }
  static unsigned taken_of(const unsigned char* group) noexcept {
    return table_group::taken(group) & layout::slot_mask;
  }
  static std::size_t slot_of(const unsigned char* mark) noexcept {
    return reinterpret_cast<std::uintptr_t>(mark) % table_group::bytes;
  }

  unsigned char* mark_ = nullptr;
  Value* element_ = nullptr;
};

}  // namespace sluice::detail
