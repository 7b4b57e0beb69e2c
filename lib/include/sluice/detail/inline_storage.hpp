// Where the elements of a container with inline storage stand: inside the object, or in a block of a memory resource.
// Open it to change how a container grows, steals or gives memory back. Containers derive from it; it begins and ends
// no element's lifetime.
//
// The object says explicitly whether its elements are inline (`heap_bit`). Comparing addresses cannot tell: under a
// malloc without block headers an object and its own heap block may be neighbours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <type_traits>

#include "sluice/detail/failure.hpp"

namespace sluice::detail {

// What constructors take where a memory resource may be given: one, or an allocator on it, or nothing, which says null.
class resource_argument {
 public:
  constexpr resource_argument() noexcept = default;
  constexpr resource_argument(std::pmr::memory_resource* resource) noexcept : resource_(resource) {}  // NOLINT
  template <class U>
  resource_argument(const std::pmr::polymorphic_allocator<U>& allocator) noexcept : resource_(allocator.resource()) {}
  constexpr std::pmr::memory_resource* get() const noexcept { return resource_; }

 private:
  std::pmr::memory_resource* resource_ = nullptr;
};

// std::pmr::new_delete_resource(), remembered, since asking is a call into the library; null before this file's
// variables are initialized.
inline std::pmr::memory_resource* const plain_new_remembered = std::pmr::new_delete_resource();

// Returns: a member as it is, read by itself. Compilers read neighbours at once, and a processor that reads at once
// what was just written in parts waits until all of it is in the cache.
template <class T>
constexpr T read_alone(const T& member) noexcept {
  T value = member;
#if defined(__GNUC__)
  if (!std::is_constant_evaluated()) asm("" : "+r"(value));
#endif
  return value;
}

// A number in a container, of a type that no element has: whatever is written to elements, compilers know that it is
// still the same, and need not read it again.
template <class Word>
class count_member {
 public:
  constexpr count_member() noexcept = default;
  constexpr count_member(Word value) noexcept : value_(static_cast<apart>(value)) {}  // NOLINT: as a number
  constexpr operator Word() const noexcept { return static_cast<Word>(value_); }      // NOLINT: as a number
  constexpr count_member& operator+=(Word more) noexcept { return *this = static_cast<Word>(*this + more); }
  constexpr count_member& operator-=(Word less) noexcept { return *this = static_cast<Word>(*this - less); }
  constexpr count_member& operator++() noexcept { return *this += 1; }

 private:
  enum class apart : Word {};
  apart value_;
};

// Invariants, outside of constant expressions:
//   !on_heap()  ⇒  data_ == inline_data() and capacity_ == inline_capacity_
//    on_heap()  ⇒  data_ has room for capacity_ elements and came from *resource_, which is not null,
//                 and capacity_ >= inline_capacity_
//   size_ <= capacity_
// In a constant expression elements are never inline: data_ is null, or comes from std::allocator. A static object that
// the compiler has initialized by one "sleeps": its data_ is null and its capacity_ 0 although it has room inside,
// until wake() is called.
//
// A null resource_ stands for std::pmr::get_default_resource(), asked when memory is first taken.
template <class T>
class inline_storage {
 public:
  using allocator_type = std::pmr::polymorphic_allocator<T>;

  inline_storage(const inline_storage&) = delete;
  inline_storage& operator=(const inline_storage&) = delete;

  // Returns: whether the elements are inside the object, so that they took no memory.
  [[nodiscard]] constexpr bool is_inline() const noexcept { return !on_heap(); }
  // Returns: how many elements fit inside the object.
  [[nodiscard]] constexpr std::size_t inline_capacity() const noexcept { return inline_capacity_; }
  // Returns: where memory comes from when the elements do not fit inside.
  [[nodiscard]] std::pmr::memory_resource* resource() const noexcept {
    return resource_ != nullptr ? resource_ : std::pmr::get_default_resource();
  }
  [[nodiscard]] allocator_type get_allocator() const noexcept { return allocator_type(resource()); }

 protected:
  // Counts of up to 2^32 - 1 elements, but of bytes as many as there are.
  using count_type = std::conditional_t<(sizeof(T) < 4), std::uint64_t, std::uint32_t>;
  // A character may be part of anything, so that nothing is gained there.
  using stored_count = std::conditional_t<sizeof(T) == 1, count_type, count_member<count_type>>;

  // `inline_data` is aligned for T, has room for `inline_capacity` elements, and lies in the object that derives from
  // this one. With a capacity of 0 it is not used. `inline_offset` is where it lies, seen from this object, or 0 when
  // that is not known beforehand: objects that are initialized by a constant expression, which cannot compute it, then
  // never use their room inside; where it is given they do so after wake().
  constexpr inline_storage(T* inline_data, std::size_t inline_capacity, std::pmr::memory_resource* resource,
                           std::size_t inline_offset = 0) noexcept
      : data_(nullptr),
        resource_(resource),
        size_(0),
        capacity_(0),
        inline_capacity_(static_cast<std::uint32_t>(inline_capacity)),
        place_(0) {
    if (std::is_constant_evaluated()) {
      place_ = static_cast<std::uint32_t>(inline_offset);
      if (inline_offset == 0) inline_capacity_ = 0;
    } else {
      place_ = inline_capacity == 0 || inline_offset != 0
                   ? static_cast<std::uint32_t>(inline_offset)
                   : static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(inline_data) -
                                                reinterpret_cast<std::uintptr_t>(this));
      data_ = inline_capacity == 0 ? nullptr : inline_data;
      capacity_ = static_cast<count_type>(inline_capacity);
    }
  }
  // Takes over the size and the block of `other`, which is empty then. When the elements were inline, which is_inline()
  // says afterwards, the caller moves them and makes `other` empty.
  // Requires: as much room inside as here, at the same place.
  constexpr inline_storage(inline_storage& other, T* inline_data, std::size_t inline_capacity,
                           std::size_t inline_offset) noexcept {
    // All that is read is read first, and what is written is written in order, so that compilers put it together.
    std::pmr::memory_resource* const resource = other.resource_;
    T* const block = read_alone(other.data_);
    const count_type size = read_alone(count_type{other.size_}),
                     block_capacity = read_alone(count_type{other.capacity_});
    const auto place = static_cast<std::uint32_t>(inline_offset);
    const bool inside = inline_capacity != 0 && !std::is_constant_evaluated();
    const auto room = inside ? static_cast<count_type>(inline_capacity) : 0;
    if (other.on_heap()) {
      data_ = block;
      resource_ = resource;
      size_ = size;
      capacity_ = block_capacity;
      inline_capacity_ = static_cast<std::uint32_t>(inline_capacity);
      place_ = place | heap_bit;
      other.data_ = inside ? reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(&other) + inline_offset) : nullptr;
      other.size_ = 0;
      other.capacity_ = room;
      other.place_ = place;
    } else {
      data_ = inside ? inline_data : nullptr;
      resource_ = resource;
      size_ = size;
      capacity_ = room;
      inline_capacity_ = static_cast<std::uint32_t>(inline_capacity);
      place_ = place;
    }
  }
  // Requires: no element lives.
  constexpr ~inline_storage() {
    if (on_heap()) release_block();
  }

  static constexpr std::size_t max_count() noexcept {
    constexpr std::size_t by_bytes = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / sizeof(T);
    constexpr std::size_t by_count = std::numeric_limits<count_type>::max();
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
    std::pmr::memory_resource* memory = resource_;
    if (memory == nullptr) resource_ = memory = std::pmr::get_default_resource();
    if (memory != plain_new_remembered) [[unlikely]]
      return allocate_from(memory, capacity);
    return plain_new(capacity);
  }
  constexpr void deallocate_block(T* block, std::size_t capacity) noexcept {
    if (std::is_constant_evaluated())
      std::allocator<T>().deallocate(block, capacity);
    else if (resource_ != plain_new_remembered) [[unlikely]]
      deallocate_to(resource_, block, capacity);
    else
      plain_delete(block);
  }

  // Effects: the block becomes the storage, in place of the one before, which is given back. Elements are the caller's.
  constexpr void adopt(T* block, std::size_t capacity) noexcept {
    release();
    data_ = block;
    capacity_ = static_cast<count_type>(capacity);
    place_ |= heap_bit;
  }

  // Effects: a block for `capacity` elements becomes the storage of an object that was just made, and so has none.
  constexpr void begin_with_block(std::size_t capacity) {
    data_ = allocate_block(capacity);
    capacity_ = static_cast<count_type>(capacity);
    place_ |= heap_bit;
  }

  // Effects: gives a block back; the storage is inline again. Requires: no element lives; size_ is the caller's.
  constexpr void release() noexcept {
    if (!on_heap()) return;
    release_block();
    become_inline();
  }

  // Effects: an object that sleeps begins to use its room inside. Returns: whether it did, so that it is worth looking
  // at capacity_ again. Called where memory would be taken, so that no fast path has to look for sleepers.
  constexpr bool wake() noexcept {
    if (std::is_constant_evaluated() || data_ != nullptr || inline_capacity_ == 0) return false;
    become_inline();
    return true;
  }

  // Returns: whether what `other` holds on the heap may be taken over as it is. A block that is smaller than the room
  // inside is not: what it holds fits there.
  constexpr bool can_steal(const inline_storage& other) const noexcept {
    if (!other.on_heap()) return false;
    if (std::is_constant_evaluated()) return true;
    if (other.capacity_ < inline_capacity_) return false;
    return resource_ == other.resource_ || *resource() == *other.resource_;
  }
  // Effects: takes over the block and the size of `other`, which is empty afterwards.
  // Requires: can_steal(other), no element of this object lives.
  constexpr void steal(inline_storage& other) noexcept {
    if (!std::is_constant_evaluated() && resource_ == nullptr) resource_ = std::pmr::get_default_resource();
    release();
    data_ = read_alone(other.data_);
    capacity_ = read_alone(count_type{other.capacity_});
    size_ = read_alone(count_type{other.size_});
    place_ |= heap_bit;
    other.become_inline();
    other.size_ = 0;
  }

  // The same between objects with as much room inside, at the same place, and the same resource.
  void steal_from_twin(inline_storage& other, T* inline_data_there, std::size_t inline_capacity,
                       std::size_t inline_offset) noexcept {
    T* const block = read_alone(other.data_);
    const count_type size = read_alone(count_type{other.size_}), capacity = read_alone(count_type{other.capacity_});
    if (on_heap()) release_block();
    const auto place = static_cast<std::uint32_t>(inline_offset);
    data_ = block;
    size_ = size;
    capacity_ = capacity;
    place_ = place | heap_bit;
    other.data_ = inline_capacity == 0 ? nullptr : inline_data_there;
    other.size_ = 0;
    other.capacity_ = static_cast<count_type>(inline_capacity);
    other.place_ = place;
  }

  T* inline_data() noexcept {
    if (inline_capacity_ == 0) return nullptr;
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(this) + (place_ & ~heap_bit));
  }

  T* data_;
  std::pmr::memory_resource* resource_;
  stored_count size_;
  stored_count capacity_;
  std::uint32_t inline_capacity_;

 private:
  // Not inline, so that a destructor is a test and a call.
  [[gnu::noinline]] constexpr void release_block() noexcept { deallocate_block(data_, capacity_); }

  // What std::pmr::new_delete_resource() would do, but not behind a virtual function, and as the compiler's own new
  // where that is enough.
  static T* plain_new(std::size_t capacity) {
    if constexpr (alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__)
      return static_cast<T*>(::operator new(capacity * sizeof(T)));
    else
      return static_cast<T*>(::operator new(capacity * sizeof(T), std::align_val_t(alignof(T))));
  }
  static void plain_delete(T* block) noexcept {
    if constexpr (alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__)
      ::operator delete(block);
    else
      ::operator delete(block, std::align_val_t(alignof(T)));
  }
  // Apart, since compilers guess at the resource and copy what they guess into each place that asks for memory. The
  // resource may be that of plain new after all, as long as it is not yet remembered.
  [[gnu::noinline]] static T* allocate_from(std::pmr::memory_resource* memory, std::size_t capacity) {
    if (memory == std::pmr::new_delete_resource()) return plain_new(capacity);
    return static_cast<T*>(memory->allocate(capacity * sizeof(T), alignof(T)));
  }
  [[gnu::noinline]] static void deallocate_to(std::pmr::memory_resource* memory, T* block,
                                              std::size_t capacity) noexcept {
    if (memory == std::pmr::new_delete_resource())
      plain_delete(block);
    else
      memory->deallocate(block, capacity * sizeof(T), alignof(T));
  }

  constexpr void become_inline() noexcept {
    place_ &= ~heap_bit;
    if (std::is_constant_evaluated()) {
      data_ = nullptr;
      capacity_ = 0;
    } else {
      data_ = inline_data();
      capacity_ = inline_capacity_;
    }
  }

  static constexpr std::uint32_t heap_bit = std::uint32_t{1} << 31;

  constexpr bool on_heap() const noexcept { return (place_ & heap_bit) != 0; }

  // heap_bit, the explicit sign, and below it where the room inside lies, seen from this object. Not bit-fields, since
  // compilers write those as bytes, and reading the whole word soon after that makes the processor wait.
  std::uint32_t place_;
};

}  // namespace sluice::detail
