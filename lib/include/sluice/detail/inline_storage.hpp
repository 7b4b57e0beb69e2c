// Where the elements of a container with inline storage stand: inside the object, or in a block of a memory resource.
// Open it to change how a container grows, steals or gives memory back. Containers derive from it; it begins and ends
// no element's lifetime.
//
// The object says explicitly whether its elements are inline (`on_heap_`). Comparing addresses cannot tell: under a
// malloc without block headers an object and its own heap block may be neighbours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <memory_resource>
#include <type_traits>

#include "sluice/detail/failure.hpp"

namespace sluice::detail {

// Invariants, outside of constant expressions:
//   !on_heap_  ⇒  data_ == inline_data() and capacity_ == inline_capacity_
//    on_heap_  ⇒  data_ has room for capacity_ elements and came from *resource_, which is not null
//   size_ <= capacity_
// In a constant expression elements are never inline: data_ is null, or comes from std::allocator.
//
// A null resource_ stands for std::pmr::get_default_resource(), asked when memory is first taken.
template <class T>
class inline_storage {
 public:
  using allocator_type = std::pmr::polymorphic_allocator<T>;

  inline_storage(const inline_storage&) = delete;
  inline_storage& operator=(const inline_storage&) = delete;

  // Returns: whether the elements are inside the object, so that they took no memory.
  [[nodiscard]] constexpr bool is_inline() const noexcept { return !on_heap_; }
  // Returns: how many elements fit inside the object.
  [[nodiscard]] constexpr std::size_t inline_capacity() const noexcept { return inline_capacity_; }
  // Returns: where memory comes from when the elements do not fit inside.
  [[nodiscard]] std::pmr::memory_resource* resource() const noexcept {
    return resource_ != nullptr ? resource_ : std::pmr::get_default_resource();
  }
  [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator_type(resource()); }

 protected:
  // Counts of up to 2^32 - 1 elements, but of bytes as many as there are.
  using count = std::conditional_t<(sizeof(T) < 4), std::uint64_t, std::uint32_t>;

  // `inline_data` is aligned for T, has room for `inline_capacity` elements, and lies in the object that derives from
  // this one. With a capacity of 0 it is not used.
  constexpr inline_storage(T* inline_data, std::size_t inline_capacity, std::pmr::memory_resource* resource) noexcept
      : resource_(resource), inline_capacity_(static_cast<std::uint32_t>(inline_capacity)) {
    if (!std::is_constant_evaluated()) {
      inline_offset_ = inline_capacity == 0 ? 0
                                            : static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(inline_data) -
                                                                         reinterpret_cast<std::uintptr_t>(this));
      data_ = inline_capacity == 0 ? nullptr : inline_data;
      capacity_ = static_cast<count>(inline_capacity);
    }
  }
  // Requires: no element lives.
  constexpr ~inline_storage() { release(); }

  static constexpr std::size_t max_count() noexcept {
    constexpr std::size_t by_bytes = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / sizeof(T);
    constexpr std::size_t by_count = std::numeric_limits<count>::max();
    return by_bytes < by_count ? by_bytes : by_count;
  }

  // Returns: what the capacity becomes when `needed` elements must fit: doubled, or `needed` if that is more.
  // Throws std::length_error, which names `function`.
  constexpr std::size_t grown_capacity(std::size_t needed, const char* function) const {
    if (needed > max_count()) throw_length_error(function);
    const std::size_t doubled = capacity_ > max_count() / 2 ? max_count() : std::size_t{capacity_} * 2;
    return doubled < needed ? needed : doubled;
  }

  // Returns: memory for `capacity` elements, not yet in use. Throws std::bad_alloc, and then nothing has changed.
  constexpr T* allocate_block(std::size_t capacity) {
    if (std::is_constant_evaluated()) return std::allocator<T>().allocate(capacity);
    if (resource_ == nullptr) resource_ = std::pmr::get_default_resource();
    return static_cast<T*>(resource_->allocate(capacity * sizeof(T), alignof(T)));
  }
  constexpr void deallocate_block(T* block, std::size_t capacity) noexcept {
    if (std::is_constant_evaluated())
      std::allocator<T>().deallocate(block, capacity);
    else
      resource_->deallocate(block, capacity * sizeof(T), alignof(T));
  }

  // Effects: the block becomes the storage, in place of the one before, which is given back. Elements are the caller's.
  constexpr void adopt(T* block, std::size_t capacity) noexcept {
    release();
    data_ = block;
    capacity_ = static_cast<count>(capacity);
    on_heap_ = true;
  }

  // Effects: gives a block back; the storage is inline again. Requires: no element lives; size_ is the caller's.
  constexpr void release() noexcept {
    if (!on_heap_) return;
    deallocate_block(data_, capacity_);
    become_inline();
  }

  // Returns: whether what `other` holds on the heap may be taken over as it is.
  constexpr bool can_steal(const inline_storage& other) const noexcept {
    if (!other.on_heap_) return false;
    if (std::is_constant_evaluated()) return true;
    return resource() == other.resource() || resource()->is_equal(*other.resource());
  }
  // Effects: takes over the block and the size of `other`, which is empty afterwards.
  // Requires: can_steal(other), no element of this object lives.
  constexpr void steal(inline_storage& other) noexcept {
    if (!std::is_constant_evaluated()) {
      std::pmr::memory_resource* const own = resource();
      release();
      resource_ = own;
    } else {
      release();
    }
    data_ = other.data_;
    capacity_ = other.capacity_;
    size_ = other.size_;
    on_heap_ = true;
    other.become_inline();
    other.size_ = 0;
  }

  T* inline_data() noexcept {
    if (inline_capacity_ == 0) return nullptr;
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(this) + inline_offset_);
  }

  T* data_ = nullptr;
  std::pmr::memory_resource* resource_;
  count size_ = 0;
  count capacity_ = 0;
  std::uint32_t inline_capacity_;

 private:
  constexpr void become_inline() noexcept {
    on_heap_ = false;
    if (std::is_constant_evaluated()) {
      data_ = nullptr;
      capacity_ = 0;
    } else {
      data_ = inline_data();
      capacity_ = inline_capacity_;
    }
  }

  std::uint32_t inline_offset_ : 31 = 0;
  std::uint32_t on_heap_ : 1 = 0;
};

}  // namespace sluice::detail
