// What a checked marker_arena knows of its blocks, markers and frames; empty under `unchecked`. Open it to change which
// mistakes with markers are found.
//
// A header in front of each block leads to the block before. Its serial number is used once: a marker remembers the
// number of the block that it follows, so it is valid exactly as long as that block is there and ends at the marker.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/detail/bump.hpp"
#include "sluice/detail/checks.hpp"
#include "sluice/detail/reporter.hpp"

namespace sluice::detail {

template <class Checks, bool = Checks::enabled>
class arena_blocks {
  struct header {
    std::byte* before;  // the block that was last; null when there was none
    std::byte* end;     // where the next block may begin
    std::uint64_t serial;
    std::uint64_t sum;  // of the others, to tell when it is overwritten
  };

 public:
  static constexpr std::size_t header_bytes = sizeof(header);
  static constexpr std::size_t fence = fence_bytes;

  struct origin {
    constexpr origin() noexcept = default;
    origin(const void* of, const arena_blocks& list) noexcept
        : arena(of), serial(list.top_ == nullptr ? 0 : read(list.top_).serial) {}
    const void* arena = nullptr;
    std::uint64_t serial = 0;
  };
  struct frame_link {
    frame_link* outer = nullptr;
    const std::byte* cursor = nullptr;
  };

  arena_blocks(std::byte* begin, const reporter<Checks>& report) noexcept
      : begin_(begin), watch_(begin), report_(report) {}

  void add(std::byte* block, const std::byte* from, std::byte* to) noexcept {
    watch_.take(from, to, report_);
    write(block, {top_, to, ++serial_, 0});
    fill(to - fence, fence, fence_byte);
    top_ = block;
  }
  void resize_top(std::byte* block, std::byte* from, std::byte* to) noexcept {
    check_fence(block, from);
    if (to > from)
      watch_.take(from, to, report_);
    else
      watch_.give_back(to, from);
    header changed = read(block);
    changed.end = to;
    write(block, changed);
    fill(to - fence, fence, fence_byte);
  }
  // Effects: ends all blocks from `to` on. Returns: where the next block may begin, behind the last one that is left.
  std::byte* drop_to(const std::byte* to, std::byte* cursor) noexcept {
    while (top_ != nullptr && top_ >= to) {
      if (!intact(top_)) {
        report_.block(violation_kind::write_past_end, top_);
        top_ = nullptr;  // only clear() comes here: a rewind looks at the headers before
        break;
      }
      const header found = read(top_);
      check_fence(top_, found.end);
      top_ = found.before;
    }
    std::byte* const end = top_ == nullptr ? begin_ : read(top_).end;
    watch_.give_back(end, cursor);
    return end;
  }

  bool check_rewind(const std::byte* place, const origin& from, const void* arena) const {
    if (from.arena != arena) {
      report_.block(violation_kind::foreign, place);
      return false;
    }
    if (innermost_ != nullptr && place < innermost_->cursor) {
      report_.block(violation_kind::marker_order, place);
      return false;
    }
    std::byte* each = top_;
    bool number_lives = false;
    while (each != nullptr) {
      if (!intact(each)) {
        report_.block(violation_kind::write_past_end, each);
        return false;
      }
      const header found = read(each);
      number_lives |= found.serial == from.serial;
      if (found.end <= place) break;
      each = found.before;
    }
    const std::byte* const end = each == nullptr ? begin_ : read(each).end;
    const std::uint64_t serial = each == nullptr ? 0 : read(each).serial;
    if (end == place && serial == from.serial) return true;
    for (; each != nullptr && intact(each); each = read(each).before)
      number_lives |= read(each).serial == from.serial;
    // Where the block is still there that the marker followed, the marker was changed: it lies inside a block.
    report_.block(number_lives || from.serial == 0 ? violation_kind::foreign : violation_kind::marker_order, place);
    return false;
  }
  bool check_clear() const {
    if (innermost_ == nullptr || innermost_->cursor == begin_) return true;
    report_.block(violation_kind::marker_order, begin_);
    return false;
  }
  // For a block that ends where the last one does.
  bool check_is_top(const std::byte* block) const {
    if (block != top_) {
      report_.block(violation_kind::foreign, block);
      return false;
    }
    if (!intact(block)) {
      report_.block(violation_kind::write_past_end, block);
      return false;
    }
    return true;
  }

  // Not inline, or gcc warns of a frame's address that outlives it: the frame takes it out at its end.
  [[gnu::noinline]] void open(frame_link& frame, const std::byte* cursor) noexcept {
    frame.outer = innermost_;
    frame.cursor = cursor;
    innermost_ = &frame;
  }
  // Returns: whether it was the innermost one. Effects: forgets it.
  [[gnu::noinline]] bool close(frame_link& frame) noexcept {
    if (innermost_ == &frame) {
      innermost_ = frame.outer;
      return true;
    }
    for (frame_link* each = innermost_; each != nullptr; each = each->outer)
      if (each->outer == &frame) each->outer = frame.outer;
    report_.block(violation_kind::marker_order, frame.cursor);
    return false;
  }

  void check_end(const std::byte* cursor) const {
    std::size_t live = 0;
    for (std::byte* each = top_; each != nullptr; each = read(each).before) {
      ++live;
      if (!intact(each)) {
        report_.block(violation_kind::write_past_end, each);
        break;
      }
      check_fence(each, read(each).end);
    }
    watch_.check_all(cursor, report_);
    if (innermost_ != nullptr) report_.block(violation_kind::marker_order, innermost_->cursor);
    if (live != 0) report_.number(violation_kind::leak, live);
  }

 private:
  static header read(const std::byte* block) noexcept {
    header result;
    __builtin_memcpy(&result, block - header_bytes, sizeof result);
    return result;
  }
  static void write(std::byte* block, header value) noexcept {
    value.sum = sum(value);
    __builtin_memcpy(block - header_bytes, &value, sizeof value);
  }
  static std::uint64_t sum(const header& value) noexcept {
    return ~(reinterpret_cast<std::uintptr_t>(value.before) + 3 * reinterpret_cast<std::uintptr_t>(value.end) +
             5 * value.serial);
  }
  static bool intact(const std::byte* block) noexcept {
    const header found = read(block);
    return found.sum == sum(found);
  }
  void check_fence(const std::byte* block, const std::byte* end) const {
    if (!is_filled(end - fence, fence, fence_byte)) report_.block(violation_kind::write_past_end, block);
  }

  std::byte* const begin_;
  std::byte* top_ = nullptr;  // the last block
  std::uint64_t serial_ = 0;
  frame_link* innermost_ = nullptr;
  free_watch<Checks> watch_;
  reporter<Checks> report_;
};

template <class Checks>
class arena_blocks<Checks, false> {
 public:
  static constexpr std::size_t header_bytes = 0;
  static constexpr std::size_t fence = 0;

  struct origin {
    constexpr origin() noexcept = default;
    constexpr origin(const void*, const arena_blocks&) noexcept {}
  };
  struct frame_link {};

  arena_blocks(const std::byte*, const reporter<Checks>&) noexcept {}
};

}  // namespace sluice::detail
