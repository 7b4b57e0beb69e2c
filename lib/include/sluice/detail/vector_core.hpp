// How a vector with inline storage makes room: growing, opening and closing gaps, taking over another's elements. Open
// it to change a guarantee or a complexity of inline_vector; the public functions only say what to make, and where.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <memory_resource>
#include <type_traits>
#include <utility>

#include "sluice/detail/inline_storage.hpp"
#include "sluice/detail/vector_elements.hpp"

namespace sluice::detail {

// `make` below is a function object that is given a place for some elements, and makes all of them there or throws and
// has made none. What it reads may be elements of this vector: they are still in their places, unless it says
// otherwise.
template <class T>
class vector_core : public inline_storage<T> {
  using base = inline_storage<T>;

 protected:
  using base::capacity_;
  using base::data_;
  using base::inline_capacity_;
  using base::resource_;
  using base::size_;
  using typename base::count_type;

  using base::base;
  constexpr ~vector_core() = default;

  // A block that is not yet in use, given back at the end unless it has been adopted.
  class new_block {
   public:
    constexpr new_block(vector_core& owner, std::size_t capacity)
        : owner_(owner), capacity_(capacity), start_(owner.allocate_block(capacity)) {}
    constexpr ~new_block() {
      if (start_ != nullptr) owner_.deallocate_block(start_, capacity_);
    }
    new_block(const new_block&) = delete;
    new_block& operator=(const new_block&) = delete;

    constexpr T* start() const noexcept { return start_; }
    constexpr void adopt() noexcept {
      owner_.adopt(start_, capacity_);
      start_ = nullptr;
    }

   private:
    vector_core& owner_;
    std::size_t capacity_;
    T* start_;
  };

  // A row of elements that stands aside of a gap. It goes back when the gap could not be filled.
  class gap {
   public:
    constexpr gap(T* start, std::size_t length, std::size_t behind) noexcept
        : start_(start), length_(length), behind_(behind) {
      relocate_up(start_, behind_, start_ + length_);
    }
    constexpr ~gap() {
      if (length_ != 0) relocate_down(start_ + length_, behind_, start_);
    }
    gap(const gap&) = delete;
    gap& operator=(const gap&) = delete;

    constexpr void filled() noexcept { length_ = 0; }

   private:
    T* start_;
    std::size_t length_, behind_;
  };

  // An element outside of the vector, made as those inside are.
  class lone_element {
   public:
    template <class... Arguments>
    constexpr explicit lone_element(vector_core& owner, Arguments&&... arguments) {
      owner.construct(std::addressof(value), std::forward<Arguments>(arguments)...);
    }
    constexpr ~lone_element() { std::destroy_at(std::addressof(value)); }
    lone_element(const lone_element&) = delete;
    lone_element& operator=(const lone_element&) = delete;

    union {
      T value;
    };
  };

  template <class... Arguments>
  constexpr void construct(T* place, Arguments&&... arguments) {
    if constexpr (takes_allocator<T>) {
      if (!std::is_constant_evaluated()) {
        // From the first element on, since all of them must have the same one.
        if (resource_ == nullptr) resource_ = std::pmr::get_default_resource();
        std::uninitialized_construct_using_allocator(place, this->get_allocator(),
                                                     std::forward<Arguments>(arguments)...);
        return;
      }
    }
    std::construct_at(place, std::forward<Arguments>(arguments)...);
  }

  // Makes copies of what `first` begins; moves, when that is a move_iterator.
  template <class Iterator>
  constexpr void construct_from(T* place, std::size_t number, Iterator first) {
    if constexpr (reads_as_bytes<Iterator, T>) {
      if (!std::is_constant_evaluated()) {
        if (number != 0)
          std::memcpy(static_cast<void*>(place), static_cast<const void*>(std::to_address(first)), number * sizeof(T));
        return;
      }
    }
    elements_in_making<T> made(place);
    for (; number != 0; --number, static_cast<void>(++first), made.made_one())
      construct(made.next(), *first);
    made.keep();
  }
  constexpr void construct_values(T* place, std::size_t number) {
    elements_in_making<T> made(place);
    for (; number != 0; --number, made.made_one())
      construct(made.next());
    made.keep();
  }
  // Makes elements without a value, where T has no constructor that gives one.
  constexpr void construct_for_overwrite(T* place, std::size_t number) {
    if constexpr (!takes_allocator<T>) {
      if (!std::is_constant_evaluated()) {
        std::uninitialized_default_construct_n(place, number);
        return;
      }
    }
    construct_values(place, number);
  }

  constexpr std::size_t grown_by(std::size_t more, const char* function) const {
    if (more > base::max_count() - size_) throw_length_error(function);
    return this->grown_capacity(size_ + more, function);
  }

  // Appends, growing when it must. Nothing has changed when it throws, except where T's moves throw and T has no
  // copies.
  template <class Make>
  constexpr void append_made(std::size_t added, const char* function, Make make) {
    if (added <= capacity_ - size_ || (this->wake() && added <= capacity_ - size_)) {
      make(data_ + size_);
    } else {
      append_in_new_block(this->grown_by(added, function), added, make);
    }
    size_ += static_cast<count_type>(added);
  }
  template <class Make>
  [[gnu::noinline]] constexpr void append_in_new_block(std::size_t capacity, std::size_t added, Make& make) {
    new_block block(*this, capacity);
    T* const behind = block.start() + size_;
    make(behind);
    elements_in_making<T> made(behind, added);
    transfer(data_, size_, block.start());
    made.keep();
    block.adopt();
  }

  // Effects: makes `number` elements, as construct_from(), in an object that was just made.
  template <class Iterator>
  constexpr void begin_with(Iterator first, std::size_t number, const char* function) {
    if (number > capacity_) this->begin_with_block(this->grown_capacity(number, function));
    construct_from(data_, number, std::move(first));
    size_ = static_cast<count_type>(number);
  }

  template <class... Arguments>
  [[gnu::noinline]] constexpr T& emplace_back_when_full(Arguments&&... arguments) {
    append_made(1, "vector_base::emplace_back",
                [&](T* place) { construct(place, std::forward<Arguments>(arguments)...); });
    return data_[size_ - 1];
  }
  // Effects: room for one more. The members are written here as well, for the compiler to see what is in them.
  constexpr void make_room_for_one() {
    const room made = room_for_one();
    data_ = made.data;
    capacity_ = static_cast<count_type>(made.capacity);
  }
  // Returns: which element this is, or size_ for another object.
  std::size_t index_in(const T* element) const noexcept {
    const std::size_t distance = reinterpret_cast<std::uintptr_t>(element) - reinterpret_cast<std::uintptr_t>(data_);
    return distance < size_ * sizeof(T) ? distance / sizeof(T) : std::size_t{size_};
  }

  // Inserts before `index`. Nothing has changed when it throws, except where T's moves throw. With room for them,
  // `make` runs while the elements behind the gap stand aside. Returns: the first of the new ones.
  template <class Make>
  constexpr T* insert_made(std::size_t index, std::size_t added, const char* function, Make make) {
    if (index == size_) {
      append_made(added, function, make);
    } else if constexpr (relocates_safely<T>) {
      if (added <= capacity_ - size_) {
        gap opened(data_ + index, added, size_ - index);
        make(data_ + index);
        opened.filled();
      } else {
        insert_in_new_block(index, added, function, make);
      }
      size_ += static_cast<count_type>(added);
    } else {
      const std::size_t before = size_;
      append_made(added, function, make);
      rotate_last(index, before);
    }
    return data_ + index;
  }
  // Inserts one element, made from another one, which may be an element of this vector. Requires: room for it.
  template <class Value>
  T* insert_one(std::size_t index, Value&& value) {
    T* const place = data_ + index;
    const std::size_t behind = size_ - index;
    if constexpr (held_in_registers<T>) {
      const T copy(value);
      relocate_up(place, behind, place + 1);
      std::construct_at(place, copy);
    } else {
      auto* from = std::addressof(value);
      if (!std::less<>()(from, place) && std::less<>()(from, place + behind))
        ++from;  // as it will when it stands aside
      gap opened(place, 1, behind);
      construct(place, static_cast<Value&&>(*from));
      opened.filled();
    }
    ++size_;
    return place;
  }
  template <class Make>
  [[gnu::noinline]] constexpr void insert_in_new_block(std::size_t index, std::size_t added, const char* function,
                                                       Make& make) {
    new_block block(*this, this->grown_by(added, function));
    make(block.start() + index);
    transfer(data_, index, block.start());
    transfer(data_ + index, size_ - index, block.start() + index + added);
    block.adopt();
  }
  // Effects: the elements from `from` on come to stand before `index`.
  constexpr void rotate_last(std::size_t index, std::size_t from) {
    if (index != from) std::rotate(data_ + index, data_ + from, data_ + size_);
  }

  // Effects: the elements from `first` on go, and those from `last` on take their places.
  constexpr void close_gap(T* first, T* last) noexcept(relocates_safely<T> || std::is_nothrow_move_assignable_v<T>) {
    const auto gone = static_cast<std::size_t>(last - first);
    if (gone == 0) return;
    T* const end = data_ + size_;
    if constexpr (relocates_safely<T>) {
      destroy_elements(first, gone);
      relocate_down(last, static_cast<std::size_t>(end - last), first);
    } else {
      destroy_elements(std::move(last, end, first), gone);
    }
    size_ -= static_cast<count_type>(gone);
  }

  // Effects: only the first `length` elements are left.
  constexpr void truncate(std::size_t length) noexcept {
    const std::size_t before = size_;
    size_ = static_cast<count_type>(length);
    destroy_elements(data_ + length, before - length);
  }

  // Effects: an exact block, or the room inside, becomes the storage.
  constexpr void change_capacity(std::size_t capacity) {
    if (this->wake() && capacity <= capacity_) return;
    new_block block(*this, capacity);
    transfer(data_, size_, block.start());
    block.adopt();
  }
  void return_inside() {
    transfer(data_, size_, this->inline_data());
    this->release();
  }

  // Effects: no element, and room for `needed`. What was there is only gone if the memory could be had.
  constexpr void discard_for(std::size_t needed, const char* function) {
    if (needed > capacity_ && !(this->wake() && needed <= capacity_)) {
      new_block block(*this, this->grown_capacity(needed, function));
      truncate(0);
      block.adopt();
    } else {
      truncate(0);
    }
  }

  // Effects: `length` elements equal to those that `first` begins, assigned to elements that are there as far as
  // they go. With too little room they are made in a new block, and nothing has changed when that throws.
  template <class Iterator>
  constexpr void assign_from(Iterator first, std::size_t length, const char* function) {
    if (length > capacity_ && !(this->wake() && length <= capacity_)) {
      new_block block(*this, this->grown_capacity(length, function));
      construct_from(block.start(), length, first);
      truncate(0);
      block.adopt();
      size_ = static_cast<count_type>(length);
      return;
    }
    if constexpr (reads_as_bytes<Iterator, T>) {
      if (!std::is_constant_evaluated()) {
        if (length != 0)
          std::memmove(static_cast<void*>(data_), static_cast<const void*>(std::to_address(first)), length * sizeof(T));
        size_ = static_cast<count_type>(length);
        return;
      }
    }
    const std::size_t before = size_, assigned = length < before ? length : before;
    for (std::size_t i = 0; i != assigned; ++i, static_cast<void>(++first))
      data_[i] = *first;
    if (length > assigned) {
      construct_from(data_ + assigned, length - assigned, first);
      size_ = static_cast<count_type>(length);
    } else {
      truncate(length);
    }
  }

  // Effects: the elements of `other`, which is empty afterwards: by its block where that can be had, else one by one.
  // Requires: no element here, and room for those that cannot be had by their block (discard_for).
  constexpr void take_elements(vector_core& other) {
    if (this->can_steal(other)) {
      this->steal(other);
      return;
    }
    if constexpr (relocates_safely<T>) {
      if (!takes_allocator<T> || resource_ == other.resource_ || std::is_constant_evaluated()) {
        transfer(other.data_, other.size_, data_);
        size_ = other.size_;
        other.size_ = 0;
        return;
      }
    }
    construct_from(data_, other.size_, std::make_move_iterator(other.data_));
    size_ = other.size_;
    other.truncate(0);
  }

  // Effects: makes elements in the room inside from those of `other`, which end; sizes are the caller's.
  // Requires: the same resource, elements inside there and none yet here.
  constexpr void move_inside(vector_core& other) {
    if constexpr (relocates_safely<T>) {
      transfer(other.data_, size_, data_);
    } else {
      construct_from(data_, size_, std::make_move_iterator(other.data_));
      other.truncate(0);
    }
  }

  constexpr void swap_with(vector_core& other) {
    if (&other == this) return;
    const bool may_take = this->can_steal(other), may_give = other.can_steal(*this);
    if (may_take && may_give) {
      std::swap(data_, other.data_);
      std::swap(size_, other.size_);
      std::swap(capacity_, other.capacity_);
    } else if (may_take && this->is_inline() && size_ <= other.inline_capacity_) {
      other.swap_block_for(*this);
    } else if (may_give && other.is_inline() && other.size_ <= inline_capacity_) {
      swap_block_for(other);
    } else if (size_ < other.size_) {
      other.swap_elements(*this);
    } else {
      swap_elements(other);
    }
  }

 private:
  struct room {
    T* data;
    std::size_t capacity;
  };
  [[gnu::noinline]] constexpr room room_for_one() {
    if (!this->wake()) {
      new_block block(*this, grown_by(1, "vector_base::push_back"));
      transfer(data_, size_, block.start());
      block.adopt();
    }
    return {data_, capacity_};
  }

  // Effects: the elements of `other` come inside, and the block with those that are here goes to `other`.
  constexpr void swap_block_for(vector_core& other) {
    const count_type coming = other.size_;
    if (coming != 0) transfer(other.data_, coming, this->inline_data());
    other.size_ = 0;
    other.steal(*this);
    size_ = coming;
  }
  static constexpr void swap_element(T& first, T& second) {
    if constexpr (takes_allocator<T>) {  // whose own swap may ask for equal resources, as that of std::pmr::string does
      T aside(std::move(first));
      first = std::move(second);
      second = std::move(aside);
    } else {
      using std::swap;
      swap(first, second);
    }
  }
  // Requires: at least as many elements as in `other`.
  constexpr void swap_elements(vector_core& other) {
    const std::size_t both = other.size_;
    other.append_made(size_ - both, "vector_base::swap", [&](T* place) {
      other.construct_from(place, size_ - both, std::make_move_iterator(data_ + both));
    });
    truncate(both);
    for (std::size_t i = 0; i != both; ++i)
      swap_element(data_[i], other.data_[i]);
  }
};

}  // namespace sluice::detail
