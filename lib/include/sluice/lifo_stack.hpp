// sluice::lifo_stack: blocks of any size on a caller's block of memory, of which the last is freed first. Open it when
// buffers nest: a parser's levels, a decoder's passes, temporary arrays of a function that may not touch the heap.
//
//   alignas(16) static std::byte memory[4096];
//   sluice::lifo_stack<> stack(memory, sizeof memory, "decoder");
//   void* const rows = stack.try_allocate(1000);             // null when there is no room
//   void* const line = stack.try_allocate(64, 32);
//   stack.pop(line);
//   stack.pop(rows);
//
// When not: many blocks end at once (marker_arena needs no header and frees them in one step), blocks come and go in
// any order (pool, malloc), or a std::pmr container asks for them (lifo_resource).
//
// Complexity: constant. Memory: 8 bytes in front of each block, which say where the block before starts, and what its
// alignment skips. Allocates nothing itself; needs no operating system. Not constexpr: constant expressions have no raw
// bytes.
// Checked (violation.hpp): popping a block that is not the last, that was popped, or that is not from here; popping an
// empty stack; blocks left at destruction; writes behind a block, to a popped one, or over a header. Costs 24 bytes
// more a block, time in proportion to its size, and a search through the stack after a mistake. Damage that is found
// leaves the operation done, unless it hit the header. Thread-safety: none.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <cstddef>
#include <cstdint>

#include "sluice/detail/bump.hpp"
#include "sluice/violation.hpp"

namespace sluice {

template <class Checks>
class lifo_resource;

// Invariants: begin_ <= top_ <= cursor_ <= end_; the last block is [top_, cursor_), in checked mode with its fence, and
// top_ == begin_ only when there is none, since a header stands in front of every block.
template <class Checks = default_checks>
class lifo_stack {
 public:
  // What a block takes beside its bytes and what its alignment skips.
  static constexpr std::size_t overhead = Checks::enabled ? 32 : 8;

  // Requires: the block outlives the stack. It may start anywhere, be of any size, and be null when that is 0. The
  // first 128 TiB of it are used.
  lifo_stack(void* block, std::size_t bytes, const char* name = "") noexcept
      : lifo_stack(block, bytes, detail::reporter<Checks>("lifo_stack", this, name)) {}
  // Requires: all blocks are popped, or clear() says that the rest is not needed.
  ~lifo_stack() {
    if constexpr (Checks::enabled) check_end();
  }
  lifo_stack(const lifo_stack&) = delete;
  lifo_stack& operator=(const lifo_stack&) = delete;

  // Returns: `size` bytes at a multiple of `align`, not cleared; null when there is no room. No size is too large to
  // ask for; a size of 0 gets a byte, so that each block has its own address. Requires: `align` is a power of two.
  [[nodiscard]] void* try_allocate(std::size_t size, std::size_t align = alignof(std::max_align_t)) noexcept {
    size += size == 0;
    const std::size_t skipped = detail::padding(reinterpret_cast<std::uintptr_t>(cursor_) + header_bytes, align);
    const std::size_t room = static_cast<std::size_t>(end_ - cursor_);
    if (room < header_bytes || skipped > room - header_bytes) return nullptr;
    const std::size_t left = room - header_bytes - skipped;
    if (size > left || left - size < fence) return nullptr;
    std::byte* const block = cursor_ + header_bytes + skipped;
    std::byte* const cursor = block + size + fence;
    if constexpr (Checks::enabled) {
      watch_.take(cursor_, cursor, report_);
      detail::fill(block + size, fence, detail::fence_byte);
    }
    write_link(block, static_cast<std::uint64_t>(block - top_) << 16 | (skipped < skip_mask ? skipped : skip_mask),
               skipped);
    top_ = block;
    cursor_ = cursor;
    return block;
  }

  // Effects: frees the last block; does nothing when there is none. Requires: `block` is top().
  void pop([[maybe_unused]] void* block) noexcept {
    if constexpr (Checks::enabled)
      if (!check_pop(block)) return;
    if (top_ == begin_) [[unlikely]]
      return;
    drop_top();
  }

  // Effects: makes the last block larger or smaller where it is; its bytes stay. Returns: false, and nothing has
  // changed, if `block` is not the last or there is no room.
  [[nodiscard]] bool try_resize_top(void* block, std::size_t size) noexcept {
    if (block != top_ || top_ == begin_) return false;
    size += size == 0;
    const std::size_t room = static_cast<std::size_t>(end_ - top_);
    if (room < fence || size > room - fence) return false;
    std::byte* const cursor = top_ + size + fence;
    if constexpr (Checks::enabled) {
      check_fence(cursor_, top_);
      if (cursor > cursor_) {
        watch_.take(cursor_, cursor, report_);
      } else {
        watch_.give_back(cursor, cursor_);
      }
      detail::fill(top_ + size, fence, detail::fence_byte);
    }
    cursor_ = cursor;
    return true;
  }

  // Effects: frees all blocks.
  void clear() noexcept {
    if constexpr (Checks::enabled) check_and_poison_all();
    top_ = cursor_ = begin_;
  }

  // Returns: the last block; null when there is none.
  [[nodiscard]] void* top() const noexcept { return top_ == begin_ ? nullptr : top_; }
  [[nodiscard]] bool empty() const noexcept { return top_ == begin_; }
  // Returns: how many bytes are taken, with headers and what alignments skip; after a pop exactly what it was before
  // the block, unless more than 32 KiB were skipped for it, some of which then stay until the block below is popped.
  [[nodiscard]] std::size_t used() const noexcept { return static_cast<std::size_t>(cursor_ - begin_); }
  [[nodiscard]] std::size_t capacity() const noexcept { return static_cast<std::size_t>(end_ - begin_); }
  // Returns: whether an address lies in the caller's block.
  [[nodiscard]] bool contains(const void* address) const noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(begin_) < capacity();
  }

 private:
  friend class lifo_resource<Checks>;

  // In front of a block: how far behind the start of the block before (of the memory, for the first) it starts; whether
  // it was released while it was not the last; how many bytes its alignment skipped, or skip_mask if that is less (the
  // rest is then given back with the block before, if any). Checked, there is more in front of that: how many it
  // skipped, and a sum to tell when the header is overwritten.
  static constexpr std::uint64_t skip_mask = 0x7fff;
  static constexpr std::uint64_t released_bit = 0x8000;
  static constexpr std::uint64_t largest = std::uint64_t{1} << 47;
  static constexpr std::size_t header_bytes = Checks::enabled ? 24 : 8;
  static constexpr std::size_t fence = overhead - header_bytes;

  lifo_stack(void* block, std::size_t bytes, const detail::reporter<Checks>& report) noexcept
      : begin_(static_cast<std::byte*>(block)),
        end_(begin_ + (bytes < largest ? bytes : static_cast<std::size_t>(largest))),
        cursor_(begin_),
        top_(begin_),
        watch_(begin_),
        report_(report) {}

  // A block may start anywhere, and so its header: it is read and written as bytes.
  static std::uint64_t read_link(const std::byte* block) noexcept {
    std::uint64_t link;
    __builtin_memcpy(&link, block - 8, sizeof link);
    return link;
  }
  static std::uint64_t read_skipped(const std::byte* block) noexcept {
    if constexpr (!Checks::enabled) return 0;
    std::uint64_t skipped;
    __builtin_memcpy(&skipped, block - 16, sizeof skipped);
    return skipped;
  }
  static void write_link(std::byte* block, std::uint64_t link, [[maybe_unused]] std::uint64_t skipped) noexcept {
    __builtin_memcpy(block - 8, &link, sizeof link);
    if constexpr (Checks::enabled) {
      const std::uint64_t sum = ~(link + skipped);
      __builtin_memcpy(block - 16, &skipped, sizeof skipped);
      __builtin_memcpy(block - 24, &sum, sizeof sum);
    }
  }
  static std::byte* before(std::byte* block, std::uint64_t link) noexcept { return block - (link >> 16); }
  static std::byte* end_before(std::byte* block, [[maybe_unused]] std::uint64_t link) noexcept {
    return block - header_bytes - (Checks::enabled ? read_skipped(block) : link & skip_mask);
  }

  void drop_top() noexcept {
    const std::uint64_t link = read_link(top_);
    std::byte* const cursor = end_before(top_, link);
    if constexpr (Checks::enabled) watch_.give_back(cursor, cursor_);
    top_ = before(top_, link);
    cursor_ = top_ == begin_ ? begin_ : cursor;
  }

  // Effects: frees a block: now if it is the last, with those below it that were released before; else together with
  // the last of those above it. Requires: it came from try_allocate() and is not released.
  void release_in_any_order(void* block) noexcept {
    [[maybe_unused]] std::byte* block_end = nullptr;
    if constexpr (Checks::enabled) {
      block_end = find(block);
      if (!check_release(block, block_end)) return;
    }
    if (block != top_) {
      auto* const start = static_cast<std::byte*>(block);
      if constexpr (Checks::enabled)
        detail::fill(start, static_cast<std::size_t>(block_end - fence - start), detail::poison_byte);
      write_link(start, read_link(start) | released_bit, read_skipped(start));
      return;
    }
    do {
      if constexpr (Checks::enabled)
        if (!check_top()) return;
      drop_top();
    } while (top_ != begin_ && is_released(top_));
  }

  // Checked.
  static bool intact(const std::byte* block) noexcept {
    std::uint64_t sum;
    __builtin_memcpy(&sum, block - 24, sizeof sum);
    return sum == ~(read_link(block) + read_skipped(block));
  }
  void check_fence(const std::byte* block_end, const std::byte* block) const {
    if (!detail::is_filled(block_end - fence, fence, detail::fence_byte))
      report_.block(violation_kind::write_past_end, block);
  }
  // Returns: whether the header of the last block can be relied upon.
  bool check_top() const {
    if (!intact(top_)) {
      report_.block(violation_kind::write_past_end, top_);
      return false;
    }
    check_contents(top_, cursor_);
    return true;
  }
  void check_contents(const std::byte* block, const std::byte* block_end) const {
    check_fence(block_end, block);
    if (is_released(block) &&
        !detail::is_filled(block, static_cast<std::size_t>(block_end - fence - block), detail::poison_byte))
      report_.block(violation_kind::write_after_release, block);
  }
  // Returns: the end of a block that is not freed, behind its fence; null if there is none there.
  std::byte* find(const void* block) const noexcept {
    std::byte* block_end = cursor_;
    for (std::byte* each = top_; each != begin_ && intact(each);) {
      if (each == block) return block_end;
      const std::uint64_t link = read_link(each);
      block_end = end_before(each, link);
      each = before(each, link);
    }
    return nullptr;
  }
  static bool is_released(const void* block) noexcept {
    return (read_link(static_cast<const std::byte*>(block)) & released_bit) != 0;
  }
  [[gnu::cold, gnu::noinline]] void report_wrong(const void* block, violation_kind if_live) const {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    violation_kind kind = violation_kind::foreign;
    if (find(block) != nullptr)
      kind = is_released(block) ? violation_kind::double_release : if_live;
    else if (contains(block) && address >= reinterpret_cast<std::uintptr_t>(cursor_) && watch_.was_used(address))
      kind = violation_kind::double_release;
    report_.block(kind, block);
  }
  bool check_pop(const void* block) const {
    if (block != top_ || top_ == begin_) {
      report_wrong(block, violation_kind::release_order);
      return false;
    }
    return check_top();
  }
  bool check_release(const void* block, const std::byte* block_end) const {
    if (block_end != nullptr && !is_released(block)) return true;
    report_wrong(block, violation_kind::foreign);
    return false;
  }
  // Returns: how many blocks were not given back. Effects: checks their fences.
  std::size_t check_blocks() const {
    std::size_t live = 0;
    std::byte* block_end = cursor_;
    for (std::byte* each = top_; each != begin_;) {
      if (!intact(each)) {
        report_.block(violation_kind::write_past_end, each);
        return live + 1;
      }
      const std::uint64_t link = read_link(each);
      check_contents(each, block_end);
      live += !is_released(each);
      block_end = end_before(each, link);
      each = before(each, link);
    }
    return live;
  }
  void check_and_poison_all() {
    check_blocks();
    watch_.check_all(cursor_, report_);
    watch_.give_back(begin_, cursor_);
  }
  void check_end() const {
    const std::size_t live = check_blocks();
    watch_.check_all(cursor_, report_);
    if (live != 0) report_.number(violation_kind::leak, live);
  }

  std::byte* const begin_;
  std::byte* const end_;
  std::byte* cursor_;  // the end of what is used
  std::byte* top_;     // the start of the last block; begin_ when there is none
  [[no_unique_address]] detail::free_watch<Checks> watch_;
  [[no_unique_address]] detail::reporter<Checks> report_;
};

}  // namespace sluice
