// Growable memory for bytes and text of which the first N are inside the object. Open it to build a message, a packet
// or a line whose usual length is known: up to N bytes no memory is taken.
//
//   void describe(const Monster& monster, sluice::buffer_base& out);   // takes a buffer of any N
//
//   sluice::inline_buffer<256> line;
//   describe(monster, line);
//   line.append(": ").append(bytes, count).push_back('\n');
//   send(line.data(), line.size());
//
// Functions take buffer_base&, which does not know N; objects are inline_buffer<N>. Not for text that is compared,
// searched or handed to C: there is no terminator (inline_string has one). Not for other elements (inline_vector), and
// not where bytes are read back in order (inline_stream).
//
// Memory: N bytes and 40 more, in the object; beyond N a block of a std::pmr::memory_resource, twice as large each
// time. Complexity: appending is O(1) a byte, amortized. The bytes are contiguous, and new ones are not cleared first.
// Invalidation: what makes the buffer larger than its capacity, shrink_to_fit, moves, swaps and assignments invalidate
// pointers and iterators; so does moving the object, when the bytes are inside.
// Errors: std::bad_alloc, or std::length_error beyond max_size(); the buffer is then as it was. Built without
// exceptions, the program ends. Thread-safety: none; as the standard's containers. constexpr, except for what takes a
// void pointer or std::byte.
//
// std::back_inserter(buffer) appends; so std::format_to and fmt::format_to write to it.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <memory_resource>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sluice/detail/failure.hpp"
#include "sluice/detail/inline_storage.hpp"

namespace sluice {

namespace detail {

// The bytes inside of an object, indeterminate at first. They may be written once this is constructed.
template <std::size_t N>
union inline_bytes {
  static_assert(N <= std::numeric_limits<std::int32_t>::max() / 2, "larger buffers belong on the heap");
  constexpr inline_bytes() noexcept : none() {}
  static constexpr char* start(inline_bytes& room) noexcept { return room.bytes; }

  struct {
  } none;
  char bytes[N];
};
template <>
union inline_bytes<0> {
  static constexpr char* start(inline_bytes&) noexcept { return nullptr; }
};

// An iterator over bytes that stand next to each other.
template <class Iterator>
concept byte_iterator = std::contiguous_iterator<Iterator> && sizeof(std::iter_value_t<Iterator>) == 1 &&
                        std::is_trivially_copyable_v<std::iter_value_t<Iterator>>;

}  // namespace detail

// A buffer, whatever its N.
class buffer_base : public detail::inline_storage<char> {
 public:
  using value_type = char;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = char&;
  using const_reference = const char&;
  using pointer = char*;
  using const_pointer = const char*;
  using iterator = char*;
  using const_iterator = const char*;

  // Effects: holds the bytes of `other`; the resource stays its own. Throws as append.
  constexpr buffer_base& operator=(const buffer_base& other) { return assign(other.view()); }
  // Effects: takes over the memory of `other` when it has a block and the resources are equal, else copies the bytes.
  // `other` is empty afterwards. Throws as append, and then neither has changed. O(1), or O(size) when copied.
  constexpr buffer_base& operator=(buffer_base&& other) {  // NOLINT: may take memory, for another resource
    if (this == &other) return *this;
    if (can_steal(other)) {
      steal(other);
    } else {
      assign(other.view());
      other.size_ = 0;
    }
    return *this;
  }

  [[nodiscard]] constexpr char* data() noexcept { return data_; }
  [[nodiscard]] constexpr const char* data() const noexcept { return data_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
  // Returns: up to how many bytes the buffer can grow before it takes memory.
  [[nodiscard]] constexpr std::size_t capacity() const noexcept {
    if (data_ == nullptr && !std::is_constant_evaluated()) return inline_capacity();
    return capacity_;
  }
  [[nodiscard]] static constexpr std::size_t max_size() noexcept { return max_count(); }

  // Returns: the contents as text. Valid until the next change.
  [[nodiscard]] constexpr std::string_view view() const noexcept { return {data_, size_}; }
  [[nodiscard]] std::span<const std::byte> as_bytes() const noexcept { return std::as_bytes(std::span(data_, size_)); }
  [[nodiscard]] std::span<std::byte> as_writable_bytes() noexcept {
    return std::as_writable_bytes(std::span(data_, size_));
  }

  constexpr iterator begin() noexcept { return data_; }
  constexpr iterator end() noexcept { return data_ + size_; }
  constexpr const_iterator begin() const noexcept { return data_; }
  constexpr const_iterator end() const noexcept { return data_ + size_; }
  constexpr const_iterator cbegin() const noexcept { return data_; }
  constexpr const_iterator cend() const noexcept { return data_ + size_; }

  // Requires: index < size().
  constexpr char& operator[](std::size_t index) noexcept { return data_[index]; }
  constexpr const char& operator[](std::size_t index) const noexcept { return data_[index]; }
  // Require: not empty.
  constexpr char& front() noexcept { return data_[0]; }
  constexpr const char& front() const noexcept { return data_[0]; }
  constexpr char& back() noexcept { return data_[size_ - 1]; }
  constexpr const char& back() const noexcept { return data_[size_ - 1]; }

  // Effects: adds a byte at the end. Throws std::bad_alloc, std::length_error; the buffer is then unchanged.
  constexpr void push_back(char byte) {
    const std::size_t size = size_;
    if (size == capacity_) [[unlikely]] {
      push_back_growing(byte);
      return;
    }
    size_ = size + 1;
    construct(data_ + size, byte);
  }
  // Requires: not empty.
  constexpr void pop_back() noexcept { --size_; }

  // Effects: adds bytes at the end. They may be a piece of this buffer. Throws std::bad_alloc, std::length_error; the
  // buffer is then unchanged.
  constexpr buffer_base& append(std::string_view text) {
    append_chars(text.data(), text.size());
    return *this;
  }
  buffer_base& append(const void* bytes, std::size_t count) {
    append_chars(static_cast<const char*>(bytes), count);
    return *this;
  }
  buffer_base& append(std::span<const std::byte> bytes) { return append(bytes.data(), bytes.size()); }
  constexpr buffer_base& append(const buffer_base& other) { return append(other.view()); }
  template <detail::byte_iterator Iterator>
  constexpr buffer_base& append(Iterator first, Iterator last) {
    if constexpr (std::is_same_v<std::iter_value_t<Iterator>, char>)
      return append(std::string_view(std::to_address(first), static_cast<std::size_t>(last - first)));
    else
      return append(std::to_address(first), static_cast<std::size_t>(last - first));
  }
  // Effects: adds `count` times the same byte.
  constexpr buffer_base& append(std::size_t count, char byte) {
    fill(append_for_overwrite(count), count, byte);
    return *this;
  }
  // Effects: adds `count` bytes of no particular value. Returns: where they stand, for the caller to write them.
  constexpr char* append_for_overwrite(std::size_t count) {
    if (count > capacity_ - size_) [[unlikely]]
      grow_by(count, "sluice::buffer_base::append");
    char* const added = data_ + size_;
    begin_life(added, count);
    size_ += count;
    return added;
  }

  // Effects: the contents become these bytes, which may be a piece of this buffer. Throws as append.
  constexpr buffer_base& assign(std::string_view text) {
    if (text.size() > capacity_ && !wakes_for(text.size())) {
      const std::size_t capacity = grown_capacity(text.size(), "sluice::buffer_base::assign");
      char* const block = allocate_block(capacity);
      copy(block, text.data(), text.size());
      adopt(block, capacity);
    } else {
      move_to_front(text);
    }
    size_ = text.size();
    return *this;
  }
  buffer_base& assign(const void* bytes, std::size_t count) {
    return assign(std::string_view(static_cast<const char*>(bytes), count));
  }

  // Effects: puts bytes before the one at `offset`. They may be a piece of this buffer. Throws as append. O(size).
  // Requires: offset <= size().
  constexpr buffer_base& insert(std::size_t offset, std::string_view text) {
    const std::size_t before = size_;
    append(text);
    std::rotate(data_ + offset, data_ + before, data_ + size_);
    return *this;
  }
  // Effects: removes `count` bytes from `offset` on. O(bytes behind them). Requires: offset + count <= size().
  constexpr buffer_base& erase(std::size_t offset, std::size_t count) noexcept {
    if (count == 0) return *this;
    std::copy(data_ + offset + count, data_ + size_, data_ + offset);
    size_ -= count;
    return *this;
  }

  // Effects: keeps the first `size` bytes; those added have the value, or for resize_for_overwrite none in particular.
  // Throws as append.
  constexpr void resize(std::size_t size, char value = '\0') {
    if (size > size_)
      append(size - size_, value);
    else
      size_ = size;
  }
  constexpr void resize_for_overwrite(std::size_t size) {
    if (size > size_)
      append_for_overwrite(size - size_);
    else
      size_ = size;
  }
  // Effects: the contents can grow to `capacity` bytes without taking memory again. Throws as append.
  constexpr void reserve(std::size_t capacity) {
    if (capacity > capacity_ && !wakes_for(capacity))
      move_to_block(grown_capacity(capacity, "sluice::buffer_base::reserve"));
  }
  // Effects: gives back what is not needed, all of it if the contents fit inside. Throws std::bad_alloc when they do
  // not fit and there is no memory for a smaller block; the buffer is then unchanged.
  constexpr void shrink_to_fit() {
    if (std::is_constant_evaluated() || is_inline()) return;
    if (size_ > inline_capacity()) {
      if (size_ != capacity_) move_to_block(size_);
      return;
    }
    copy(inline_data(), data_, size_);
    release();
  }
  // Effects: holds nothing; the memory stays.
  constexpr void clear() noexcept { size_ = 0; }

  // Effects: exchanges the contents, each buffer keeping its resource; blocks change hands when the resources are
  // equal. Throws as append if bytes must be copied where they do not fit; both are then unchanged.
  constexpr void swap(buffer_base& other) {
    if (this == &other) return;
    if (can_steal(other) && other.can_steal(*this)) {
      std::swap(data_, other.data_);
      std::swap(capacity_, other.capacity_);
      std::swap(size_, other.size_);
    } else if (!take_block_of(other) && !other.take_block_of(*this)) {
      swap_bytes(other);
    }
  }
  friend constexpr void swap(buffer_base& a, buffer_base& b) { a.swap(b); }

  friend constexpr bool operator==(const buffer_base& a, const buffer_base& b) noexcept { return a.view() == b.view(); }
  friend constexpr bool operator==(const buffer_base& a, std::string_view b) noexcept { return a.view() == b; }
  friend constexpr std::strong_ordering operator<=>(const buffer_base& a, const buffer_base& b) noexcept {
    return a.view() <=> b.view();
  }
  friend constexpr std::strong_ordering operator<=>(const buffer_base& a, std::string_view b) noexcept {
    return a.view() <=> b;
  }

 protected:
  // As the constructor of inline_storage.
  constexpr buffer_base(char* inline_data, std::size_t inline_capacity, std::pmr::memory_resource* resource,
                        std::size_t inline_offset = 0) noexcept
      : inline_storage(inline_data, inline_capacity, resource, inline_offset) {}
  // Returns: what a container that is moved from `other` takes memory from.
  static constexpr std::pmr::memory_resource* resource_of(const buffer_base& other) noexcept { return other.resource_; }
  constexpr ~buffer_base() = default;

 private:
  // In a constant expression, bytes of a block must begin their life before they are assigned to.
  static constexpr void construct(char* place, char value) noexcept {
    if (std::is_constant_evaluated())
      std::construct_at(place, value);
    else
      *place = value;
  }
  static constexpr void begin_life(char* place, std::size_t count) noexcept {
    if (std::is_constant_evaluated()) fill(place, count, '\0');
  }
  static constexpr void fill(char* place, std::size_t count, char value) noexcept {
    if (std::is_constant_evaluated()) {
      for (std::size_t i = 0; i < count; ++i)
        std::construct_at(place + i, value);
    } else if (count != 0) {
      std::memset(place, value, count);
    }
  }
  static constexpr void copy(char* to, const char* from, std::size_t count) noexcept {
    if (std::is_constant_evaluated()) {
      for (std::size_t i = 0; i < count; ++i)
        std::construct_at(to + i, from[i]);
    } else if (count != 0) {
      std::memcpy(to, from, count);
    }
  }
  constexpr void move_to_front(std::string_view text) noexcept {
    if (std::is_constant_evaluated())
      copy(data_, text.data(), text.size());
    else if (!text.empty())
      std::memmove(data_, text.data(), text.size());
  }

  constexpr void append_chars(const char* chars, std::size_t count) {
    if (count > capacity_ - size_) [[unlikely]] {
      append_growing(chars, count, "sluice::buffer_base::append");
      return;
    }
    copy(data_ + size_, chars, count);
    size_ += count;
  }

  // Returns: whether an empty object that slept has room inside for `count` bytes.
  constexpr bool wakes_for(std::size_t count) noexcept { return wake() && count <= capacity_; }
  // Returns: the capacity for `count` bytes more. Throws std::length_error.
  constexpr std::size_t capacity_for(std::size_t count, const char* function) const {
    if (count > max_size() - size_) detail::throw_length_error(function);
    return grown_capacity(size_ + count, function);
  }
  // By value, so that push_back need not keep its byte in memory.
  [[gnu::cold, gnu::noinline]] constexpr void push_back_growing(char byte) {
    append_growing(&byte, 1, "sluice::buffer_base::push_back");
  }
  // The bytes may be in the block that is given back, so they are copied before.
  [[gnu::cold, gnu::noinline]] constexpr void append_growing(const char* chars, std::size_t count,
                                                             const char* function) {
    if (wakes_for(count)) {
      append_chars(chars, count);
      return;
    }
    const std::size_t capacity = capacity_for(count, function);
    char* const block = allocate_block(capacity);
    copy(block, data_, size_);
    copy(block + size_, chars, count);
    adopt(block, capacity);
    size_ += count;
  }
  [[gnu::cold, gnu::noinline]] constexpr void grow_by(std::size_t count, const char* function) {
    if (!wakes_for(count)) move_to_block(capacity_for(count, function));
  }
  constexpr void move_to_block(std::size_t capacity) {
    char* const block = allocate_block(capacity);
    copy(block, data_, size_);
    adopt(block, capacity);
  }

  // Effects: swaps, if `other` has a block that may come here, and what is inside this one fits inside `other`.
  constexpr bool take_block_of(buffer_base& other) noexcept {
    if (!is_inline() || !can_steal(other) || size_ > other.inline_capacity()) return false;
    const std::size_t size = size_;
    if (size != 0) copy(other.inline_data(), data_, size);  // unused while `other` has a block
    steal(other);
    other.size_ = size;
    return true;
  }
  constexpr void swap_bytes(buffer_base& other) {
    buffer_base& longer = size_ < other.size_ ? other : *this;
    buffer_base& shorter = size_ < other.size_ ? *this : other;
    const std::size_t common = shorter.size_;
    shorter.reserve(longer.size_);
    std::swap_ranges(longer.data_, longer.data_ + common, shorter.data_);
    copy(shorter.data_ + common, longer.data_ + common, longer.size_ - common);
    std::swap(shorter.size_, longer.size_);
  }
};

// A buffer with room for N bytes inside; N may be 0.
template <std::size_t N>
class inline_buffer : public buffer_base {
  using source = detail::resource_argument;

 public:
  // `memory` is a std::pmr::memory_resource* or polymorphic_allocator; left out or null it is the default resource at
  // the time when memory is first taken. Those that are given contents throw as append when they do not fit inside.
  constexpr inline_buffer() noexcept : inline_buffer(source()) {}
  constexpr explicit inline_buffer(source memory) noexcept
      : buffer_base(room::start(room_), N, memory.get(), sizeof(buffer_base)) {}
  constexpr explicit inline_buffer(std::string_view text, source memory = {}) : inline_buffer(memory) { assign(text); }

  constexpr inline_buffer(const inline_buffer& other) : inline_buffer(other.view()) {}
  constexpr inline_buffer(const buffer_base& other, source memory = {}) : inline_buffer(other.view(), memory) {}

  // Effects: as the move assignment, with the resource of `other` unless another is given.
  constexpr inline_buffer(inline_buffer&& other) noexcept  // NOLINT: what is inside the one fits inside the other
      : inline_buffer(std::move(other), resource_of(other)) {}
  constexpr inline_buffer(buffer_base&& other) : inline_buffer(std::move(other), resource_of(other)) {}
  constexpr inline_buffer(buffer_base&& other, source memory) : inline_buffer(memory) {
    buffer_base::operator=(std::move(other));
  }

  constexpr inline_buffer& operator=(const inline_buffer& other) {
    buffer_base::operator=(other);
    return *this;
  }
  constexpr inline_buffer& operator=(inline_buffer&& other) {  // NOLINT: as the base
    buffer_base::operator=(std::move(other));
    return *this;
  }
  using buffer_base::operator=;

 private:
  using room = detail::inline_bytes<N>;
  [[no_unique_address]] room room_;  // right behind the base, which has no padding at its end
};

}  // namespace sluice
