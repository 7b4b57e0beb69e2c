// The memory and the growth of a hash table that begins inside the object and goes on in a block of a memory resource:
// how it is opened, grows, is copied, moved, swapped and ended. Open it to change one of these; table.hpp is the
// interface of it, and table_area.hpp says how elements are found.
//
// The object says explicitly whether its elements are inline (`on_heap_`): under a malloc without block headers an
// object and its own heap block may be neighbours, so that addresses tell nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <memory_resource>
#include <type_traits>
#include <utility>

#include "sluice/detail/failure.hpp"
#include "sluice/detail/table_area.hpp"
#include "sluice/hash.hpp"

namespace sluice::detail {

// Kind says what an element is: key_type, value_type, key(element), movable(element) to make another of, and how it
// may be moved (table_kind.hpp).
//
// Invariants:
//   !on_heap_  ⇒  area_ is the room inside the object, with the shape that it was opened with
//    on_heap_  ⇒  area_ came from *resource_, which is not null
//   size_ <= area_.limit()
// A null resource_ stands for std::pmr::get_default_resource(), asked when memory is first taken.
template <class Kind, class Hash, class Equal>
class table_core {
 protected:
  using key_type = typename Kind::key_type;
  using value_type = typename Kind::value_type;
  using area = table_area<value_type>;
  using layout = typename area::layout;
  using place = typename area::place;

 public:
  table_core(const table_core&) = delete;
  table_core& operator=(const table_core&) = delete;

 protected:
  // Without room inside, until open_inline.
  table_core(std::pmr::memory_resource* resource, const Hash& hash, const Equal& equal)
      : resource_(resource), hash_(hash), equal_(equal) {}
  ~table_core() { finish(); }

  // Effects: begins with no element, in the room inside the derived object.
  template <std::size_t Capacity>
  void open_inline(unsigned char* room) noexcept {
    inline_capacity_ = static_cast<std::uint32_t>(Capacity);
    if constexpr (Capacity != 0) {
      inline_offset_ =
          static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(room) - reinterpret_cast<std::uintptr_t>(this));
      area_ = area(room, layout::inline_shape(Capacity));
      area_.open();
    }
  }
  // Effects: destroys the elements and gives memory back; for destructors, as nothing can be called after it but
  // itself.
  void finish() noexcept {
    area_.destroy_elements();
    if (on_heap_) deallocate(area_);
    on_heap_ = 0;
    area_ = area();
    size_ = 0;
  }

  template <class Other>
  place place_of(const Other& wanted) const {
    const auto& normal = normal_key(wanted);
    return find_place(normal, hash_of(normal));
  }

  // Effects: unless an element has the key, makes one of the arguments, which may refer to elements of this table.
  template <class Other, class... Arguments>
  std::pair<place, bool> insert_key(const Other& wanted, Arguments&&... arguments) {
    const auto& normal = normal_key(wanted);
    const std::uint64_t hash = hash_of(normal);
    const place found = find_place(normal, hash);
    if (found) return {found, false};
    return {insert_new(hash, std::forward<Arguments>(arguments)...), true};
  }
  // Effects: removes all elements; the capacity stays. Complexity: linear in the capacity.
  void clear() noexcept {
    area_.destroy_elements();
    area_.open();
    size_ = 0;
  }
  // Effects: until there are more than `elements`, insertions do not grow the table. Throws std::bad_alloc or
  // std::length_error, and what hash functions and copying throw.
  void reserve(std::size_t elements) {
    if (elements > area_.limit()) grow_to(elements);
  }
  // Effects: makes an element first, and keeps it unless another has its key.
  template <class... Arguments>
  std::pair<place, bool> insert_made(Arguments&&... arguments) {
    table_room<sizeof(value_type), alignof(value_type)> room;
    const made_element made(*this, reinterpret_cast<value_type*>(room.start()), std::forward<Arguments>(arguments)...);
    return insert_key(Kind::key(*made.made), Kind::movable(*made.made));
  }

  // Effects: inserts the elements of a range by insert_one(*first), with as few allocations as can be.
  template <class Iterator, class Sentinel, class Insert>
  void insert_each(Iterator first, Sentinel last, Insert insert_one) {
    for (; first != last; ++first) {
      if constexpr (std::forward_iterator<Iterator>)
        if (size_ == area_.limit()) reserve_for(static_cast<std::size_t>(std::ranges::distance(first, last)));
      insert_one(*first);
    }
  }

  void copy_from(const table_core& other) {
    reserve(other.size_);
    if (area_.shape() == other.area_.shape()) {
      copy_slots(other, [this](const place& at, value_type* to) { construct(to, std::as_const(*at.element())); });
      return;
    }
    other.area_.for_each([&](const place& at) {
      const value_type& from = *at.element();
      insert_new(hash_of(Kind::key(from)), from);
    });
  }
  // Effects: takes the elements of `other`, which is empty afterwards. Requires: this table is empty.
  void take_from(table_core& other) {
    if (other.on_heap_ && shares_memory(other)) {
      std::pmr::memory_resource* const own = own_resource();
      finish();
      resource_ = own;
      area_ = other.area_;
      size_ = other.size_;
      on_heap_ = 1;
      other.on_heap_ = 0;
      other.area_ = other.inline_area();
      other.area_.open();
      other.size_ = 0;
      return;
    }
    reserve(other.size_);
    if (area_.shape() == other.area_.shape()) {
      copy_slots(other, [&](const place& at, value_type* to) {
        const leaving from(other, at);
        construct(to, Kind::movable(*at.element()));
      });
    } else {
      other.area_.for_each([&](const place& at) {
        const std::uint64_t hash = hash_of(Kind::key(*at.element()));
        const leaving from(other, at);
        insert_new(hash, Kind::movable(*at.element()));
      });
    }
    other.clear();
  }
  void copy_assign(const table_core& other) {
    if (this == &other) return;
    clear();
    hash_ = other.hash_;
    equal_ = other.equal_;
    copy_from(other);
  }
  void move_assign(table_core& other) {
    if (this == &other) return;
    clear();
    hash_ = other.hash_;
    equal_ = other.equal_;
    take_from(other);
  }
  void swap_with(table_core& other) {
    if (this == &other) return;
    if (!on_heap_ && other.on_heap_) return other.swap_with(*this);
    if (on_heap_ == other.on_heap_ && shares_memory(other)) {
      if (on_heap_ != 0) {
        std::swap(area_, other.area_);
        std::swap(size_, other.size_);
        return swap_functions(other);
      }
      if (Kind::relocates_nothrow && area_.shape() == other.area_.shape()) {
        area_.template exchange_slots<Kind>(other.area_);
        std::swap(size_, other.size_);
        return swap_functions(other);
      }
    }
    table_core beside(resource_, hash_, equal_);  // has no room inside: only if both are inline, it takes memory
    beside.take_from(*this);
    move_assign(other);
    other.move_assign(beside);
  }
  bool equals(const table_core& other) const {
    if (size_ != other.size_) return false;
    using iterator = table_iterator<value_type, true>;
    for (iterator at = iterator::first(area_.groups()); at != iterator(); ++at) {
      const value_type& own = *at;
      const place found = other.place_of(Kind::key(own));
      if (!found || !Kind::same_value(own, *found.element())) return false;
    }
    return true;
  }
  // Effects: moves those elements of `other` here whose keys are not here.
  void take_missing(table_core& other) {
    if (this == &other) return;
    // What is copied stays in `other` if that throws. What may have been moved from does not: its key tells nothing.
    const bool copies = !Kind::relocates_nothrow || (Kind::takes_allocator && !shares_memory(other));
    other.area_.for_each([&](const place& at) {
      value_type& from = *at.element();
      const auto& key = normal_key(Kind::key(from));
      const std::uint64_t hash = hash_of(key);
      if (find_place(key, hash)) return;
      const std::uint64_t hash_there = other.hash_to_erase(at);
      if (size_ == area_.limit()) grow_to(grown_limit());
      if constexpr (Kind::copyable) {
        if (copies) {
          insert_new(hash, std::as_const(from));
          return other.erase_place(at, hash_there);
        }
      }
      const erased_at_end moved{other, at, hash_there};
      insert_new(hash, Kind::movable(from));
    });
  }

  [[nodiscard]] std::pmr::memory_resource* own_resource() const noexcept {
    return resource_ != nullptr ? resource_ : std::pmr::get_default_resource();
  }

  static std::pmr::memory_resource* resource_of(const table_core& other) noexcept { return other.resource_; }

  template <class Other>
  std::uint64_t hash_of(const Other& wanted) const noexcept(noexcept(std::declval<const Hash&>()(wanted))) {
    const auto hash = hash_(wanted);
    if constexpr (requires { typename Hash::is_avalanching; } && sizeof(hash) == sizeof(std::uint64_t))
      return hash;
    else
      return mix_hash(static_cast<std::uint64_t>(hash));
  }
  // Returns: the key as what hash and comparison look at, so that a literal is measured once.
  template <class Other>
  static decltype(auto) normal_key(const Other& wanted) noexcept {
    if constexpr (requires {
                    typename Hash::view_type;
                    typename Equal::view_type;
                  })
      return typename Equal::view_type(wanted);
    else
      return (wanted);
  }
  template <class Other>
  place find_place(const Other& wanted, std::uint64_t hash) const {
    return area_.find(hash, [&](const value_type& candidate) -> bool { return equal_(Kind::key(candidate), wanted); });
  }

  // Effects: the element is gone. Throws: what the hash function throws, and then nothing has changed. An element at
  // home needs no hash; when all are, none is asked for.
  void erase_place(const place& at) { erase_place(at, hash_to_erase(at)); }
  std::uint64_t hash_to_erase(const place& at) const {
    return area_.displaced() == 0 ? 0 : hash_of(Kind::key(*at.element()));
  }
  template <class Other>
  std::size_t erase_key(const Other& wanted) {
    const auto& normal = normal_key(wanted);
    const std::uint64_t hash = hash_of(normal);
    const place found = find_place(normal, hash);
    if (!found) return 0;
    erase_place(found, hash);
    return 1;
  }

  // Effects: an area for so many elements, inside the object if they fit there, becomes the table's.
  [[gnu::noinline]] void grow_to(std::size_t elements) {
    fresh_area fresh(*this, elements);
    relocate_into(fresh.made);
    fresh.become_own();
  }
  void change_shape(std::size_t elements) {
    const bool too_large = on_heap_ != 0 && (elements <= inline_capacity_ || checked_shape(elements) != area_.shape());
    if (elements > area_.limit() || too_large) grow_to(elements);
  }
  // Effects: room for `more` further elements, if there is none, in one step; at least what growth would make.
  void reserve_for(std::size_t more) {
    if (more > layout::most_elements - size_) throw_length_error("insert: too many elements");
    const std::size_t grown = grown_limit();
    grow_to(size_ + more < grown ? grown : size_ + more);
  }

  area area_;
  std::size_t size_ = 0;
  std::pmr::memory_resource* resource_;
  std::uint32_t inline_capacity_ = 0;
  std::uint32_t inline_offset_ : 31 = 0;
  std::uint32_t on_heap_ : 1 = 0;
  [[no_unique_address]] Hash hash_;
  [[no_unique_address]] Equal equal_;

 private:
  // An element that is destroyed unless it is kept.
  struct made_element {
    template <class... Arguments>
    made_element(table_core& owner, value_type* room, Arguments&&... arguments) : made(room) {
      owner.construct(room, std::forward<Arguments>(arguments)...);
    }
    ~made_element() { std::destroy_at(made); }
    made_element(const made_element&) = delete;
    made_element& operator=(const made_element&) = delete;
    value_type* made;
  };

  // An area that elements are brought into. Unless it becomes the table's own, it is taken down with them.
  class fresh_area {
   public:
    // Requires: if so many elements fit inside the object, the room there is not in use.
    fresh_area(table_core& owner, std::size_t elements) : owner_(owner), on_heap_(elements > owner.inline_capacity_) {
      if (on_heap_) {
        const table_shape shape = checked_shape(elements);
        if (owner.resource_ == nullptr) owner.resource_ = std::pmr::get_default_resource();
        void* const block = owner.resource_->allocate(layout::bytes(shape), layout::block_align(shape));
        made = area(static_cast<unsigned char*>(block), shape);
      } else {
        made = owner.inline_area();
      }
      made.open();
    }
    ~fresh_area() {
      if (kept_) return;
      made.destroy_elements();
      if (on_heap_) owner_.deallocate(made);
    }
    fresh_area(const fresh_area&) = delete;
    fresh_area& operator=(const fresh_area&) = delete;

    // Requires: no element lives in the owner's area.
    void become_own() noexcept {
      if (owner_.on_heap_) owner_.deallocate(owner_.area_);
      owner_.area_ = made;
      owner_.on_heap_ = on_heap_;
      kept_ = true;
    }

    area made;

   private:
    table_core& owner_;
    const bool on_heap_;
    bool kept_ = false;
  };

  static table_shape checked_shape(std::size_t elements) {
    if (elements > layout::most_elements) throw_length_error("reserve: too many elements");
    return layout::shape_for(elements);
  }
  // Returns: how many elements a table that is full is to have room for.
  std::size_t grown_limit() const {
    // A block that was taken over can have room for fewer elements than the object.
    if (area_.limit() < inline_capacity_) return inline_capacity_;
    constexpr std::size_t first = sizeof(value_type) <= 32 ? layout::slots : 4;
    const std::size_t more = area_.limit() + area_.limit() / 2 + 1;  // the number of groups is rounded up to twice that
    return more < first ? first : more;
  }
  area inline_area() noexcept {
    if (inline_capacity_ == 0) return area();
    auto* const room = reinterpret_cast<unsigned char*>(reinterpret_cast<std::uintptr_t>(this) + inline_offset_);
    return area(room, layout::inline_shape(inline_capacity_));
  }
  void deallocate(const area& block) noexcept {
    resource_->deallocate(block.groups(), layout::bytes(block.shape()), layout::block_align(block.shape()));
  }

  template <class... Arguments>
  void construct(value_type* room, Arguments&&... arguments) {
    if constexpr (Kind::takes_allocator) {
      if (resource_ == nullptr) resource_ = std::pmr::get_default_resource();
      std::uninitialized_construct_using_allocator(room, std::pmr::polymorphic_allocator<>(resource_),
                                                   std::forward<Arguments>(arguments)...);
    } else {
      std::construct_at(room, std::forward<Arguments>(arguments)...);
    }
  }

  template <class... Arguments>
  place insert_new(std::uint64_t hash, Arguments&&... arguments) {
    if (size_ == area_.limit()) [[unlikely]]
      return insert_growing(hash, std::forward<Arguments>(arguments)...);
    const place at = area_.room_for(hash, size_);
    construct(at.element(), std::forward<Arguments>(arguments)...);
    area_.occupy(at, hash);
    ++size_;
    return at;
  }
  // The new element is made before the others are moved, since the arguments may refer to one of them.
  template <class... Arguments>
  [[gnu::noinline]] place insert_growing(std::uint64_t hash, Arguments&&... arguments) {
    fresh_area fresh(*this, grown_limit());
    const place at = fresh.made.room_for(hash);
    construct(at.element(), std::forward<Arguments>(arguments)...);
    fresh.made.occupy(at, hash);
    relocate_into(fresh.made);
    fresh.become_own();
    ++size_;
    return at;
  }

  void erase_place(const place& at, std::uint64_t hash) noexcept {
    std::destroy_at(at.element());
    area_.vacate(at, hash);
    --size_;
  }

  // Effects: the elements live in the other area, and no more in this one; size_ stays.
  // Throws: what hash, move and copy throw. Where elements are copied, nothing has changed then. Where they are moved,
  // those that were moved before something threw are lost.
  void relocate_into(area& fresh) {
    if constexpr (Kind::moves_to_grow) {
      const std::size_t size = size_;
      area_.for_each([&](const place& from) {
        value_type* const source = from.element();
        const std::uint64_t hash = hash_of(Kind::key(*source));
        const place to = fresh.room_for(hash);
        if constexpr (!Kind::relocates_nothrow) {
          const leaving moved(*this, from);
          std::construct_at(to.element(), Kind::movable(*source));
        } else {
          Kind::relocate(to.element(), source);
          if constexpr (!noexcept(hash_of(Kind::key(*source)))) leave(from);
        }
        fresh.occupy(to, hash);
      });
      size_ = size;
    } else {
      area_.for_each([&](const place& from) {
        value_type* const source = from.element();
        const std::uint64_t hash = hash_of(Kind::key(*source));
        const place to = fresh.room_for(hash);
        construct(to.element(), Kind::copied(*source));
        fresh.occupy(to, hash);
      });
      area_.destroy_elements();
    }
  }
  // Effects: the place, whose element ends otherwise, is empty. It needs no hash, and so it still counts as displaced
  // if it was, until the table is cleared or gets another area.
  void leave(const place& at) noexcept {
    at.mark() = table_group::hole;
    --size_;
  }
  // An element that is being moved to another table or area. Whether that succeeds or not, it is here no more: a key
  // that may have been moved from does not tell where it is.
  struct leaving {
    leaving(table_core& owner, const place& from) noexcept : at(from) { owner.leave(from); }
    ~leaving() { std::destroy_at(at.element()); }
    leaving(const leaving&) = delete;
    leaving& operator=(const leaving&) = delete;
    const place at;
  };
  // The same where the hash is known.
  struct erased_at_end {
    ~erased_at_end() { owner.erase_place(at, hash); }
    table_core& owner;
    const place at;
    const std::uint64_t hash;
  };

  // Effects: makes each element, by make(place there, room here), in the slot where it is in the other table.
  // Requires: this one is empty, of the same shape.
  template <class Make>
  void copy_slots(const table_core& other, Make make) {
    const area& source = other.area_;
    if (source.limit() == 0) return;
    area_.set_displaced(source.displaced());
    if constexpr (Kind::moves_as_bytes) {
      std::memcpy(area_.groups(), source.groups(), layout::bytes(source.shape()));
      size_ = other.size_;
    } else {
      // Until its element has been made, a slot is a hole.
      for (std::size_t i = 0, last = (source.shape().groups - 1) * layout::stride; i <= last; i += layout::stride)
        table_group::copy_with_holes(area_.groups() + i, source.groups() + i);
      source.for_each([&](const place& at) {
        const place own{area_.groups() + (at.group - source.groups()), at.slot};
        const unsigned char mark = at.mark();
        make(at, own.element());
        own.mark() = mark;
        ++size_;
      });
    }
  }

  bool shares_memory(const table_core& other) const noexcept {
    return own_resource() == other.own_resource() || own_resource()->is_equal(*other.own_resource());
  }
  void swap_functions(table_core& other) {
    std::swap(hash_, other.hash_);
    std::swap(equal_, other.equal_);
  }
};

}  // namespace sluice::detail
