// vector_base: all of a vector with inline storage but the storage. Open it for the interface of inline_vector, whose
// header says when to use it, what it costs, and what it guarantees.
#pragma once

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <memory_resource>
#include <ranges>
#include <type_traits>
#include <utility>

#include "sluice/detail/vector_core.hpp"

namespace sluice {

namespace detail {

// Ranges with elements for a vector of T, other than vectors, which have functions of their own.
template <class Range, class T>
concept elements_for =
    std::ranges::input_range<Range> && std::constructible_from<T, std::ranges::range_reference_t<Range>>;

}  // namespace detail

template <class T>
class vector_base : public detail::vector_core<T> {
  static_assert(std::is_object_v<T> && !std::is_const_v<T> && !std::is_volatile_v<T>);
  using core = detail::vector_core<T>;

 protected:
  using core::capacity_;
  using core::data_;
  using core::size_;
  using typename core::count_type;

 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using pointer = T*;
  using const_pointer = const T*;
  using iterator = T*;
  using const_iterator = const T*;
  using reverse_iterator = std::reverse_iterator<iterator>;
  using const_reverse_iterator = std::reverse_iterator<const_iterator>;
  using typename core::allocator_type;

  // Effects: the elements become equal to the other's, whatever room each has inside. The resource stays.
  constexpr vector_base& operator=(const vector_base& other) {
    if (this != &other) this->assign_from(other.data_, other.size_, "vector_base::operator=");
    return *this;
  }
  // Effects: takes over the other's block, or moves its elements; it is empty afterwards. Nothing, for itself.
  // Throws only if the elements' moves do, or if memory must be taken: from another resource, or from a larger N.
  // NOLINTNEXTLINE(performance-noexcept-move-constructor)
  constexpr vector_base& operator=(vector_base&& other) {
    if (this == &other) return *this;
    this->discard_for(this->can_steal(other) ? 0 : other.size(), "vector_base::operator=");
    this->take_elements(other);
    return *this;
  }
  constexpr vector_base& operator=(std::initializer_list<T> elements) {
    assign(elements);
    return *this;
  }

  // Access.

  constexpr T* data() noexcept { return data_; }
  constexpr const T* data() const noexcept { return data_; }
  constexpr T& operator[](std::size_t index) noexcept { return data_[index]; }
  constexpr const T& operator[](std::size_t index) const noexcept { return data_[index]; }
  // Throws std::out_of_range.
  constexpr T& at(std::size_t index) {
    if (index >= size_) detail::throw_out_of_range("vector_base::at");
    return data_[index];
  }
  constexpr const T& at(std::size_t index) const {
    if (index >= size_) detail::throw_out_of_range("vector_base::at");
    return data_[index];
  }
  constexpr T& front() noexcept { return data_[0]; }
  constexpr const T& front() const noexcept { return data_[0]; }
  constexpr T& back() noexcept { return data_[size_ - 1]; }
  constexpr const T& back() const noexcept { return data_[size_ - 1]; }

  constexpr iterator begin() noexcept { return data_; }
  constexpr iterator end() noexcept { return data_ + size_; }
  constexpr const_iterator begin() const noexcept { return data_; }
  constexpr const_iterator end() const noexcept { return data_ + size_; }
  constexpr const_iterator cbegin() const noexcept { return begin(); }
  constexpr const_iterator cend() const noexcept { return end(); }
  constexpr reverse_iterator rbegin() noexcept { return reverse_iterator(end()); }
  constexpr reverse_iterator rend() noexcept { return reverse_iterator(begin()); }
  constexpr const_reverse_iterator rbegin() const noexcept { return const_reverse_iterator(end()); }
  constexpr const_reverse_iterator rend() const noexcept { return const_reverse_iterator(begin()); }
  constexpr const_reverse_iterator crbegin() const noexcept { return rbegin(); }
  constexpr const_reverse_iterator crend() const noexcept { return rend(); }

  // Size and room.

  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr std::size_t size() const noexcept { return size_; }
  static constexpr std::size_t max_size() noexcept { return core::max_count(); }
  constexpr std::size_t capacity() const noexcept {
    if (data_ == nullptr && !std::is_constant_evaluated()) return this->inline_capacity();
    return capacity_;
  }
  // Effects: room for `capacity` elements, exactly if there was not enough.
  constexpr void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    if (capacity > max_size()) detail::throw_length_error("vector_base::reserve");
    this->change_capacity(capacity);
  }
  // Effects: elements that fit inside go there, and no block is left; otherwise the block is made exact.
  constexpr void shrink_to_fit() {
    if (this->is_inline()) return;
    if (size_ == 0)
      this->release();
    else if (!std::is_constant_evaluated() && size_ <= this->inline_capacity())
      this->return_inside();
    else if (size_ != capacity_)
      this->change_capacity(size_);
  }
  constexpr void resize(std::size_t size) {
    if (size <= size_) {
      this->truncate(size);
      return;
    }
    const std::size_t added = size - size_;
    this->append_made(added, "vector_base::resize", [&](T* place) { this->construct_values(place, added); });
  }
  constexpr void resize(std::size_t size, const T& value) {
    if (size <= size_)
      this->truncate(size);
    else
      append(size - size_, value);
  }
  // Effects: as resize(), but new elements without a constructor are left without a value, to be written over.
  constexpr void resize_for_overwrite(std::size_t size) {
    if (size <= size_) {
      this->truncate(size);
      return;
    }
    const std::size_t added = size - size_;
    this->append_made(added, "vector_base::resize_for_overwrite",
                      [&](T* place) { this->construct_for_overwrite(place, added); });
  }
  constexpr void clear() noexcept { this->truncate(0); }

  // At the end. The arguments may be elements of this vector.

  constexpr void push_back(const T& value) {
    if constexpr (detail::moves_as_bytes<T>)
      append_kept(value);
    else
      emplace_back(value);
  }
  constexpr void push_back(T&& value) {
    if constexpr (detail::moves_as_bytes<T> && std::is_copy_constructible_v<T>)
      append_kept(value);
    else
      emplace_back(std::move(value));
  }
  template <class... Arguments>
  constexpr T& emplace_back(Arguments&&... arguments) {
    if constexpr (detail::held_in_registers<T>) {
      const typename core::lone_element made(*this, std::forward<Arguments>(arguments)...);
      return append_kept(made.value);
    } else {
      const std::size_t index = size_;
      if (index == capacity_) [[unlikely]]
        return this->emplace_back_when_full(std::forward<Arguments>(arguments)...);
      T* const place = data_ + index;
      this->construct(place, std::forward<Arguments>(arguments)...);
      size_ = static_cast<count_type>(index + 1);
      return *place;
    }
  }
  // Requires: not empty.
  constexpr void pop_back() noexcept { this->truncate(size_ - 1); }

  constexpr void append(std::size_t number, const T& value) {
    this->append_made(number, "vector_base::append",
                      [&](T* place) { this->construct_from(place, number, repeated(value)); });
  }
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> Sentinel>
  constexpr void append(Iterator first, Sentinel last) {
    if constexpr (std::forward_iterator<Iterator>) {
      const auto added = static_cast<std::size_t>(std::ranges::distance(first, last));
      this->append_made(added, "vector_base::append",
                        [&](T* place) { this->construct_from(place, added, std::move(first)); });
    } else {
      shorten_on_exception unless_done(*this);
      for (; first != last; ++first)
        emplace_back(*first);
      unless_done.length = size_;
    }
  }
  template <detail::elements_for<T> Range>
  constexpr void append(Range&& range) {
    append(std::ranges::begin(range), std::ranges::end(range));
  }
  constexpr void append(std::initializer_list<T> elements) { append(elements.begin(), elements.end()); }
  template <detail::elements_for<T> Range>
  constexpr void append_range(Range&& range) {
    append(std::forward<Range>(range));
  }

  // Anywhere. All return where the first of the new elements stands, or the one behind those that are gone.

  // The arguments may be elements of this vector.
  template <class... Arguments>
  constexpr iterator emplace(const_iterator place, Arguments&&... arguments) {
    const std::size_t index = index_of(place);
    if constexpr (detail::relocates_safely<T> && (std::is_same_v<std::remove_cvref_t<Arguments>, T> && ...) &&
                  sizeof...(Arguments) == 1) {
      if (size_ != capacity_ && !std::is_constant_evaluated())
        return this->insert_one(index, std::forward<Arguments>(arguments)...);
    }
    if (index == size_ || size_ == capacity_ || !detail::relocates_safely<T>)
      return this->insert_made(index, 1, "vector_base::emplace",
                               [&](T* raw) { this->construct(raw, std::forward<Arguments>(arguments)...); });
    typename core::lone_element made(*this, std::forward<Arguments>(arguments)...);
    return this->insert_made(index, 1, "vector_base::emplace",
                             [&](T* raw) { std::construct_at(raw, std::move(made.value)); });
  }
  constexpr iterator insert(const_iterator place, const T& value) { return emplace(place, value); }
  constexpr iterator insert(const_iterator place, T&& value) { return emplace(place, std::move(value)); }
  constexpr iterator insert(const_iterator place, std::size_t number, const T& value) {
    const std::size_t index = index_of(place);
    if (number == 0) return data_ + index;
    const typename core::lone_element copy(*this, value);
    return this->insert_made(index, number, "vector_base::insert",
                             [&](T* raw) { this->construct_from(raw, number, repeated(copy.value)); });
  }
  // Requires: no iterators of this vector.
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> Sentinel>
  constexpr iterator insert(const_iterator place, Iterator first, Sentinel last) {
    const std::size_t index = index_of(place);
    if constexpr (std::forward_iterator<Iterator>) {
      const auto added = static_cast<std::size_t>(std::ranges::distance(first, last));
      if (added == 0) return data_ + index;
      return this->insert_made(index, added, "vector_base::insert",
                               [&](T* raw) { this->construct_from(raw, added, std::move(first)); });
    } else {
      const std::size_t before = size_;
      append(std::move(first), std::move(last));
      this->rotate_last(index, before);
      return data_ + index;
    }
  }
  constexpr iterator insert(const_iterator place, std::initializer_list<T> elements) {
    return insert(place, elements.begin(), elements.end());
  }
  template <detail::elements_for<T> Range>
  constexpr iterator insert_range(const_iterator place, Range&& range) {
    return insert(place, std::ranges::begin(range), std::ranges::end(range));
  }

  constexpr iterator erase(const_iterator place) { return erase(place, place + 1); }
  constexpr iterator erase(const_iterator first, const_iterator last) {
    T* const start = data_ + index_of(first);
    this->close_gap(start, start + (last - first));
    return start;
  }

  // All elements.

  constexpr void assign(std::size_t number, const T& value) {
    this->assign_from(repeated(value), number, "vector_base::assign");
  }
  // Requires: no iterators of this vector.
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> Sentinel>
  constexpr void assign(Iterator first, Sentinel last) {
    if constexpr (std::forward_iterator<Iterator>) {
      const auto length = static_cast<std::size_t>(std::ranges::distance(first, last));
      this->assign_from(std::move(first), length, "vector_base::assign");
    } else {
      clear();
      append(std::move(first), std::move(last));
    }
  }
  constexpr void assign(std::initializer_list<T> elements) { assign(elements.begin(), elements.end()); }
  template <detail::elements_for<T> Range>
  constexpr void assign_range(Range&& range) {
    assign(std::ranges::begin(range), std::ranges::end(range));
  }

  // Effects: exchanges the elements, whatever room each has inside. Resources stay.
  // Throws as operator=(vector_base&&), and what swapping elements throws.
  constexpr void swap(vector_base& other) { this->swap_with(other); }
  friend constexpr void swap(vector_base& first, vector_base& second) { first.swap(second); }

  friend constexpr bool operator==(const vector_base& left, const vector_base& right) requires
      requires(const T& one, const T& other) {
    one == other;
  }
  { return std::equal(left.begin(), left.end(), right.begin(), right.end()); }
  friend constexpr auto operator<=>(const vector_base& left, const vector_base& right) requires
      requires(const T& one, const T& other) {
    one < other;
  }
  {
    return std::lexicographical_compare_three_way(left.begin(), left.end(), right.begin(), right.end(),
                                                  [](const T& first, const T& second) {
                                                    if constexpr (std::three_way_comparable<T>)
                                                      return first <=> second;
                                                    else
                                                      return first < second   ? std::weak_ordering::less
                                                             : second < first ? std::weak_ordering::greater
                                                                              : std::weak_ordering::equivalent;
                                                  });
  }

 protected:
  using core::core;
  constexpr ~vector_base() = default;

  // Returns: null for the default resource that was not yet asked for.
  static constexpr std::pmr::memory_resource* resource_of(const vector_base& vector) noexcept {
    return vector.resource_;
  }

 private:
  // Appends a copy. A value that fits into registers is read before the vector grows, and what has become of the
  // vector's members is known afterwards, so that compilers hold all of it there from one of these calls to the next.
  constexpr T& append_kept(const T& value) {
    std::conditional_t<detail::held_in_registers<T>, const T, const T&> kept(value);
    const T* from = std::addressof(kept);
    const std::size_t index = size_;
    if (index == capacity_) [[unlikely]] {
      if (std::is_constant_evaluated()) return this->emplace_back_when_full(*from);
      if constexpr (detail::held_in_registers<T>) {
        this->make_room_for_one();
      } else {
        const std::size_t own = this->index_in(from);
        this->make_room_for_one();
        if (own != index) from = data_ + own;
      }
    }
    T* const place = data_ + index;
    this->construct(place, *from);
    size_ = static_cast<count_type>(index + 1);
    return *place;
  }

  constexpr std::size_t index_of(const_iterator place) const noexcept {
    return static_cast<std::size_t>(place - data_);
  }

  // A vector that goes back to its length when what appends to it throws.
  struct shorten_on_exception {
    constexpr explicit shorten_on_exception(vector_base& owner) noexcept : vector(owner), length(owner.size_) {}
    constexpr ~shorten_on_exception() { vector.truncate(length); }
    shorten_on_exception(const shorten_on_exception&) = delete;
    shorten_on_exception& operator=(const shorten_on_exception&) = delete;
    vector_base& vector;
    std::size_t length;
  };

  // An iterator, as far as assign_from() uses one, over a value again and again.
  struct repeated {
    constexpr explicit repeated(const T& one) : value(one) {}
    constexpr const T& operator*() const noexcept { return value; }
    constexpr repeated& operator++() noexcept { return *this; }
    std::conditional_t<detail::held_in_registers<T>, const T, const T&> value;
  };
};

}  // namespace sluice
