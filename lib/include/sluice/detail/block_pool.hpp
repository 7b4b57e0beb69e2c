// Blocks of one size, cut from chunks of a memory resource: what pool and pool_resource share. Open it to change how
// blocks are found, linked and checked.
//
// Free blocks form a list that lies in themselves. A chunk is not linked as a whole when it is taken: blocks join the
// list a few kilobytes at a time, in the order of their addresses, so that memory is touched when it is about to be
// used. A chunk's description stands behind its blocks, where it costs no alignment:
//
//   begin, aligned                                        footer
//   [block 0][block 1] … [block count-1][up to 7 bytes][next, begin, count][checked: a link for each block]
//
// Chunks are listed from the oldest to the newest and cut in that order; blocks of `carving_` from fresh_ on, and all
// of the chunks after it, have never been linked.
//
// Checked, a block is followed by a fence, a free one is poison from end to end, and the links lie in the footer where
// writes past a block's end do not reach them at once. The link of a block that is handed out points to its own chunk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <type_traits>

#include "sluice/detail/checks.hpp"
#include "sluice/detail/failure.hpp"
#include "sluice/detail/reporter.hpp"

namespace sluice::detail {

template <std::size_t Size, std::size_t Align, class Checks>
class block_pool {
  static_assert(Size > 0 && Align > 0 && (Align & (Align - 1)) == 0);
  static_assert(Size <= std::numeric_limits<std::ptrdiff_t>::max() / 4 && Align <= std::size_t{1} << 30);

 public:
  // A block holds a link while it is free, wherever it lies: links are read and written as bytes.
  static constexpr std::size_t stride = [] {
    std::size_t bytes = Checks::enabled ? Size + fence_bytes : Size;
    if (bytes < sizeof(void*)) bytes = sizeof(void*);
    return (bytes + (Align - 1)) & ~(Align - 1);
  }();

  // A null `upstream` may stand for the default resource in constant expressions only.
  constexpr block_pool(std::pmr::memory_resource* upstream, const reporter<Checks>& reporter) noexcept
      : upstream_(upstream), report_(reporter) {
    // Memory that is held makes a compiler begin a static pool at run time, when there is a default resource.
    if (std::is_constant_evaluated()) fresh_ = std::allocator<std::byte>().allocate(1);
  }
  constexpr ~block_pool() {
    if (std::is_constant_evaluated()) {
      std::allocator<std::byte>().deallocate(fresh_, 1);
      return;
    }
    if constexpr (Checks::enabled) {
      check_free_blocks();
      if (in_use_ != 0) report_.number(violation_kind::leak, in_use_);
    }
    free_chunks();
  }
  block_pool(const block_pool&) = delete;
  block_pool& operator=(const block_pool&) = delete;

  // Unchecked, the blocks are counted when it is asked how many, so that acquiring and releasing need not.
  constexpr std::size_t in_use() const noexcept {
    if (Checks::enabled || std::is_constant_evaluated()) return in_use_;
    return capacity_ - free_blocks();
  }
  constexpr std::size_t capacity() const noexcept { return capacity_; }
  std::pmr::memory_resource* upstream() const noexcept { return upstream_; }

  // Returns: a block, or null when all are handed out.
  void* try_acquire() noexcept {
    void* block = free_;
    if (block == nullptr) [[unlikely]] {
      block = link_some();
      if (block == nullptr) return nullptr;
    }
    return take(block);
  }
  // Returns: a block. Throws what the resource throws when it is out of memory, and then nothing has changed.
  void* acquire() {
    void* block = free_;
    if (block == nullptr) [[unlikely]]
      block = link_some_or_grow();
    return take(block);
  }
  void release(void* block) noexcept {
    if constexpr (Checks::enabled) {
      if (!check_release(block)) return;
      poison_released(block);
    }
    set_next(block, free_);
    free_ = block;
    if constexpr (Checks::enabled) --in_use_;
  }
  // Checked: whether the block is handed out; reports what it is otherwise.
  bool check_release(const void* block) const {
    const place found = locate(block);
    if (found.where == nullptr) {
      report_.block(violation_kind::foreign, block);
      return false;
    }
    if (links(found.where)[found.index] != found.where) {
      report_.block(violation_kind::double_release, block);
      return false;
    }
    return true;
  }

  // Effects: afterwards the capacity is at least `blocks`. Throws as acquire().
  void reserve(std::size_t blocks) {
    if (blocks > capacity_) add_chunk(blocks - capacity_);
  }
  // Effects: gives all chunks back, whatever is handed out.
  void drop_all() noexcept {
    if constexpr (Checks::enabled) check_free_blocks();
    free_chunks();
    free_ = nullptr;
    fresh_ = fresh_end_ = nullptr;
    first_ = carving_ = nullptr;
    in_use_ = capacity_ = 0;
  }
  // Returns: whether this is the address of a block from here, handed out or not.
  bool owns(const void* block) const noexcept { return locate(block).where != nullptr; }

  // In constant expressions blocks come from elsewhere, and are only counted here.
  constexpr void count_capacity(std::size_t blocks) noexcept { capacity_ = blocks > capacity_ ? blocks : capacity_; }
  constexpr void count_acquired() noexcept { ++in_use_; }
  constexpr void count_released() noexcept { --in_use_; }

 private:
  struct chunk {
    chunk* next;
    std::byte* begin;
    std::size_t count;
  };
  struct place {
    chunk* where;
    std::size_t index;
  };
  static constexpr std::size_t chunk_align = Align > alignof(chunk) ? Align : alignof(chunk);
  static constexpr std::size_t link_bytes = Checks::enabled ? sizeof(void*) : 0;
  static constexpr std::size_t max_blocks =
      (std::numeric_limits<std::ptrdiff_t>::max() - sizeof(chunk) - alignof(chunk)) / (stride + link_bytes);
  static constexpr std::size_t batch = stride < 4096 ? 4096 / stride : 1;  // as many are linked at a time
  static constexpr std::size_t least = stride < 256 ? 4096 / stride : 16;  // as many has a first chunk that grows

  static constexpr std::size_t footer_offset(std::size_t blocks) noexcept {
    return (blocks * stride + (alignof(chunk) - 1)) & ~(alignof(chunk) - 1);
  }
  static constexpr std::size_t chunk_bytes(std::size_t blocks) noexcept {
    return footer_offset(blocks) + sizeof(chunk) + blocks * link_bytes;
  }
  static void** links(chunk* where) noexcept { return reinterpret_cast<void**>(where + 1); }

  void* take(void* block) noexcept {
    free_ = next(block);
    if constexpr (Checks::enabled) {
      ++in_use_;
      hand_out(block);
    }
    return block;
  }
  void* next(const void* block) const noexcept {
    if constexpr (Checks::enabled) {
      const place found = locate(block);
      return links(found.where)[found.index];
    } else {
      void* result;
      __builtin_memcpy(&result, block, sizeof result);
      return result;
    }
  }
  void set_next(void* block, void* next) noexcept {
    if constexpr (Checks::enabled) {
      const place found = locate(block);
      links(found.where)[found.index] = next;
    } else {
      __builtin_memcpy(block, &next, sizeof next);
    }
  }

  std::size_t free_blocks() const noexcept {
    std::size_t count = static_cast<std::size_t>(fresh_end_ - fresh_) / stride;
    for (const chunk* each = carving_ == nullptr ? first_ : carving_->next; each != nullptr; each = each->next)
      count += each->count;
    for (const void* block = free_; block != nullptr; block = next(block))
      ++count;
    return count;
  }

  // These are rare, but not [[gnu::cold]]: a function that is sure to call a cold one is taken for cold as a whole, and
  // one that makes a pool of some capacity, or takes the first block of an empty one, is sure to.

  // Returns: the head of the list, after blocks that were never handed out have joined it; null when there are none.
  // Requires: the list is empty.
  [[gnu::noinline]] void* link_some() noexcept {
    if (fresh_ == fresh_end_) {
      chunk* const following = carving_ == nullptr ? first_ : carving_->next;
      if (following == nullptr) return nullptr;
      carving_ = following;
      fresh_ = following->begin;
      fresh_end_ = following->begin + following->count * stride;
    }
    const std::size_t left = static_cast<std::size_t>(fresh_end_ - fresh_) / stride;
    std::byte* const start = fresh_;
    fresh_ += (left < batch ? left : batch) * stride;
    for (std::byte* block = fresh_; block != start;) {
      block -= stride;
      set_next(block, free_);
      free_ = block;
    }
    return free_;
  }
  [[gnu::noinline]] void* link_some_or_grow() {
    if (void* const block = link_some(); block != nullptr) return block;
    add_chunk(capacity_ < least ? least : capacity_);
    return link_some();
  }

  [[gnu::noinline]] void add_chunk(std::size_t blocks) {
    if (blocks > max_blocks) throw_bad_alloc();
    auto* const begin = static_cast<std::byte*>(upstream_->allocate(chunk_bytes(blocks), chunk_align));
    auto* const added = ::new (begin + footer_offset(blocks)) chunk{nullptr, begin, blocks};
    if constexpr (Checks::enabled) {
      fill(begin, blocks * stride, poison_byte);
      for (std::size_t i = 0; i < blocks; ++i)
        ::new (links(added) + i) void*(nullptr);
    }
    chunk** end = carving_ == nullptr ? &first_ : &carving_->next;
    while (*end != nullptr)
      end = &(*end)->next;
    *end = added;
    capacity_ += blocks;
  }
  void free_chunks() noexcept {
    for (chunk* each = first_; each != nullptr;) {
      chunk* const following = each->next;
      upstream_->deallocate(each->begin, chunk_bytes(each->count), chunk_align);
      each = following;
    }
  }

  place locate(const void* block) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    for (chunk* each = first_; each != nullptr; each = each->next) {
      const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(each->begin);
      if (offset < each->count * stride) return {offset % stride == 0 ? each : nullptr, offset / stride};
    }
    return {nullptr, 0};
  }

  // Damage is reported, and the operation goes on: it is not the one that did it.
  void hand_out(void* block) noexcept {
    const place found = locate(block);
    links(found.where)[found.index] = found.where;
    if (!is_filled(block, stride, poison_byte)) report_.block(violation_kind::write_after_release, block);
    fill(static_cast<std::byte*>(block) + Size, stride - Size, fence_byte);
  }
  void poison_released(void* block) noexcept {
    if (!is_filled(static_cast<std::byte*>(block) + Size, stride - Size, fence_byte))
      report_.block(violation_kind::write_past_end, block);
    fill(block, stride, poison_byte);
  }
  void check_free_blocks() const {
    for (chunk* each = first_; each != nullptr; each = each->next)
      for (std::size_t i = 0; i < each->count; ++i) {
        const std::byte* const block = each->begin + i * stride;
        if (links(each)[i] != each && !is_filled(block, stride, poison_byte))
          report_.block(violation_kind::write_after_release, block);
        if (links(each)[i] == each && !is_filled(block + Size, stride - Size, fence_byte))
          report_.block(violation_kind::write_past_end, block);
      }
  }

  void* free_ = nullptr;        // the list
  std::size_t in_use_ = 0;      // checked, and in constant expressions
  std::byte* fresh_ = nullptr;  // in carving_, the first block that was never linked
  std::byte* fresh_end_ = nullptr;
  std::size_t capacity_ = 0;
  chunk* first_ = nullptr;
  chunk* carving_ = nullptr;
  std::pmr::memory_resource* upstream_;
  [[no_unique_address]] reporter<Checks> report_;
};

}  // namespace sluice::detail
