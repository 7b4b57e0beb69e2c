// sluice::frame: memory that is dropped at the end of a block of code, for C++ and as a std::pmr::memory_resource. Open
// it when objects of a request, a document or one step of a game's loop end together.
//
//   sluice::frame frame;
//   std::pmr::vector<std::pmr::string> words(frame.resource());
//
// sluice/frame.h describes the memory behind it, and the same functions for C.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory_resource>
#include <new>
#include <type_traits>
#include <utility>

#include "sluice/frame.h"

namespace sluice {

// Constructed and destroyed on one thread, last in, first out: a frame that ends also drops the memory of frames opened
// after it (checked mode stops the process). Destructors of the objects are not run. Containers in a frame must end
// before it, as they do when they are declared after it.
//
// Thread-safety: none; a frame is used by its own thread. Its blocks may be read and written by any.
class frame final : private std::pmr::memory_resource {
 public:
  frame() noexcept : state_(&sluice_frame_thread), mark_(sluice_frame_mark_in(state_)), outer_(state_->floor) {
    depth_ = ++state_->depth;
    state_->floor = mark_;
  }
  ~frame() override {
    free_beside();
    if (state_->depth < depth_) return;  // an outer frame ended first, and everything here with it
    require_innermost();
    sluice_frame_rewind_in(state_, mark_);
    state_->depth = depth_ - 1;
    state_->floor = outer_;
  }
  frame(const frame&) = delete;
  frame& operator=(const frame&) = delete;

  // Returns: the frame as a memory resource. Deallocating gives memory back only if the block is the last one.
  std::pmr::memory_resource* resource() noexcept { return this; }

  // Returns: memory for `size` bytes at a multiple of `align`, a power of two; not cleared. Valid until this frame ends
  // or is rewound, also when it is not the innermost one. Throws std::bad_alloc.
  void* allocate(std::size_t size, std::size_t align = alignof(std::max_align_t)) { return do_allocate(size, align); }

  // Effects: makes a block of this frame larger or smaller, in place when it is the last one or shrinks; else its bytes
  // move. Returns: the block, aligned to 16 if it moved. Throws std::bad_alloc, and then the old block is untouched.
  void* grow(void* block, std::size_t old_size, std::size_t new_size) {
    const auto start = reinterpret_cast<std::uintptr_t>(block);
    if (block != nullptr && state_->depth == depth_ && start + old_size == state_->cursor &&
        new_size < state_->limit - start) {
      state_->cursor = start + new_size;
      return block;
    }
    if (block != nullptr && new_size <= old_size) return block;
    void* const moved = do_allocate(new_size, alignof(std::max_align_t));
    if (old_size != 0) std::memcpy(moved, block, old_size < new_size ? old_size : new_size);
    return moved;
  }

  // Returns: an object made from the arguments. Throws std::bad_alloc, and what the constructor throws.
  // Requires of T: that its destructor does nothing, since it is never called.
  template <class T, class... Arguments>
  T* create(Arguments&&... arguments) {
    static_assert(std::is_trivially_destructible_v<T>, "a frame runs no destructors");
    void* const block = allocate(sizeof(T), alignof(T));
    if constexpr (std::is_constructible_v<T, Arguments...>)
      return ::new (block) T(std::forward<Arguments>(arguments)...);
    else  // an aggregate, for compilers that want braces
      return ::new (block) T{std::forward<Arguments>(arguments)...};
  }

  // Effects: drops everything allocated in this frame, and goes on.
  // Requires: no inner frame is open.
  void rewind() noexcept {
    free_beside();
    require_innermost();
    sluice_frame_rewind_in(state_, mark_);
  }

 private:
  // Memory for an outer frame while an inner one is open: the inner one's rewind must not take it along.
  struct Beside {
    Beside* next;
    std::uintptr_t cursor, end;
  };
  static constexpr std::size_t beside_bytes = 4096;

  // In checked mode.
  void require_innermost() const noexcept {
    if ((state_->tag & 1) != 0 && state_->depth != depth_) sluice_frame_stop("past an inner one that is still open");
  }

  void* do_allocate(std::size_t size, std::size_t align) override {
    void* const block =
        state_->depth == depth_ ? sluice_frame_alloc_in(state_, size, align) : allocate_beside(size, align);
    if (block == nullptr) throw_bad_alloc();
    return block;
  }
  void do_deallocate(void* block, std::size_t size, std::size_t) override {
    const auto start = reinterpret_cast<std::uintptr_t>(block);
    if (start + size == state_->cursor && state_->depth == depth_) state_->cursor = start;
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  void* allocate_beside(std::size_t size, std::size_t align) {
    if (size > SIZE_MAX / 4 || align > SIZE_MAX / 4) return nullptr;
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (beside_ != nullptr) {
        const std::uintptr_t start = (beside_->cursor + (align - 1)) & ~(align - 1);
        if (start <= beside_->end && size <= beside_->end - start) {
          beside_->cursor = start + size;
          return reinterpret_cast<void*>(start);
        }
      }
      const std::size_t least = sizeof(Beside) + size + align;
      const std::size_t bytes = least < beside_bytes ? beside_bytes : least;
      void* const memory = std::malloc(bytes);
      if (memory == nullptr) return nullptr;
      const auto address = reinterpret_cast<std::uintptr_t>(memory);
      beside_ = ::new (memory) Beside{beside_, address + sizeof(Beside), address + bytes};
    }
    return nullptr;
  }
  void free_beside() noexcept {
    while (beside_ != nullptr) {
      Beside* const next = beside_->next;
      std::free(beside_);
      beside_ = next;
    }
  }

  [[noreturn]] static void throw_bad_alloc() {
#if defined(__cpp_exceptions)
    throw std::bad_alloc();
#else
    std::abort();
#endif
  }

  sluice_frame_state* const state_;
  const sluice_mark mark_;
  const sluice_mark outer_;  // the floor before this frame
  std::uintptr_t depth_;
  Beside* beside_ = nullptr;
};

}  // namespace sluice
