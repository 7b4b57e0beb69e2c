// sluice::marker_arena: memory that is taken piece by piece from a caller's block and freed back to a marker in one
// step. Open it for what ends together: a level and all it loaded, the frames of a game, the steps of a request.
//
//   static std::byte memory[1 << 20];
//   sluice::marker_arena<> arena(memory, sizeof memory, "level");
//   auto* const tiles = arena.create_array<Tile>(64 * 64);     // null when there is no room
//   const auto loaded = arena.mark();
//   void* const path = arena.try_allocate(4000);
//   arena.rewind(loaded);                                      // `path` and all after it are free
//   { sluice::marker_arena<>::frame scratch(arena); arena.try_allocate(100); }   // free at the end
//   arena.clear();
//
// When not: single blocks are freed (lifo_stack, pool), objects have destructors to run, a std::pmr container asks for
// memory (marker_resource), or there is no bound (sluice::frame, which has the whole heap behind it).
//
// Complexity: constant. Memory: what is asked for and what its alignment skips. Allocates nothing itself; needs no
// operating system. Not constexpr: constant expressions have no raw bytes.
// Checked (violation.hpp): markers of other arenas, markers of what was freed since, markers that lie on no boundary of
// blocks, frames that end before inner ones, a rewind past an open frame, blocks left at destruction, writes behind a
// block and to freed memory. Costs 40 bytes a block, and time in proportion to what is handed out and freed. Damage
// that is found leaves the operation done, unless it hit a header.
// Thread-safety: none.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include "sluice/detail/arena_blocks.hpp"
#include "sluice/detail/bump.hpp"
#include "sluice/violation.hpp"

namespace sluice {

// Invariants: begin_ <= floor_ <= cursor_ <= end_ (floor_ <= cursor_ as long as markers are used in order).
template <class Checks = default_checks>
class marker_arena {
  using blocks = detail::arena_blocks<Checks>;

 public:
  // A place between blocks. Valid until the arena is rewound to one before it; a rewind to it leaves it valid.
  class marker {
   public:
    // Of no arena.
    constexpr marker() noexcept = default;

   private:
    friend class marker_arena;
    constexpr marker(std::byte* cursor, const marker_arena* arena, const blocks& list) noexcept
        : cursor_(cursor), origin_(arena, list) {}

    std::byte* cursor_ = nullptr;
    [[no_unique_address]] typename blocks::origin origin_;
  };

  // Marks the arena, and rewinds it at the end. Frames end in the reverse order of their beginnings, as blocks of code
  // do. No destructors are run.
  class frame : private blocks::frame_link {
   public:
    explicit frame(marker_arena& arena) noexcept : arena_(arena), floor_(arena.floor_), marker_(arena.mark()) {
      if constexpr (Checks::enabled) arena.blocks_.open(*this, arena.cursor_);
    }
    ~frame() { arena_.end(*this); }
    frame(const frame&) = delete;
    frame& operator=(const frame&) = delete;

    // Effects: frees what was allocated since the frame began, and goes on. Requires: no inner frame is open.
    void rewind() noexcept { arena_.rewind(marker_); }

   private:
    friend class marker_arena;
    marker_arena& arena_;
    std::byte* const floor_;  // the arena's before
    const marker marker_;
  };

  // What a block takes beside its bytes and what its alignment skips.
  static constexpr std::size_t overhead = blocks::header_bytes + blocks::fence;

  // Requires: the block outlives the arena. It may start anywhere, be of any size, and be null when that is 0.
  marker_arena(void* block, std::size_t bytes, const char* name = "") noexcept
      : marker_arena(block, bytes, detail::reporter<Checks>("marker_arena", this, name)) {}
  // Requires: all is freed; clear() says that the rest is not needed.
  ~marker_arena() {
    if constexpr (Checks::enabled) blocks_.check_end(cursor_);
  }
  marker_arena(const marker_arena&) = delete;
  marker_arena& operator=(const marker_arena&) = delete;

  // Returns: `size` bytes at a multiple of `align`, not cleared; null when there is no room. No size is too large to
  // ask for; a size of 0 gets a byte, so that each block has its own address. Requires: `align` is a power of two.
  [[nodiscard]] void* try_allocate(std::size_t size, std::size_t align = alignof(std::max_align_t)) noexcept {
    size += size == 0;
    const std::size_t skipped =
        detail::padding(reinterpret_cast<std::uintptr_t>(cursor_) + blocks::header_bytes, align);
    const std::size_t room = static_cast<std::size_t>(end_ - cursor_);
    if constexpr (overhead != 0)
      if (room < overhead) return nullptr;
    const std::size_t left = room - overhead;
    if (skipped > left || size > left - skipped) return nullptr;
    std::byte* const block = cursor_ + blocks::header_bytes + skipped;
    std::byte* const cursor = block + size + blocks::fence;
    if constexpr (Checks::enabled) blocks_.add(block, cursor_, cursor);
    cursor_ = cursor;
    return block;
  }

  // Returns: an object made from the arguments; null when there is no room. Throws what the constructor throws, and
  // then its memory stays taken. Its destructor has nothing to do, since it is never called.
  template <class T, class... Arguments>
  T* create(Arguments&&... arguments) {
    static_assert(std::is_trivially_destructible_v<T>, "an arena runs no destructors");
    void* const block = try_allocate(sizeof(T), alignof(T));
    if (block == nullptr) return nullptr;
    if constexpr (std::is_constructible_v<T, Arguments...>)
      return ::new (block) T(std::forward<Arguments>(arguments)...);
    else  // an aggregate, for compilers that want braces
      return ::new (block) T{std::forward<Arguments>(arguments)...};
  }
  // Returns: the first of `count` objects one after another, each value-initialized (numbers are 0); null when there is
  // no room.
  template <class T>
  T* create_array(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>, "an arena runs no destructors");
    if (count > PTRDIFF_MAX / sizeof(T)) return nullptr;
    void* const block = try_allocate(count * sizeof(T), alignof(T));
    if (block == nullptr) return nullptr;
    T* const first = static_cast<T*>(block);
    for (std::size_t i = 0; i < count; ++i)
      ::new (static_cast<void*>(first + i)) T();
    return first;
  }

  // Returns: a marker of where the next block would begin. What is allocated before stays until a rewind to before it.
  [[nodiscard]] marker mark() noexcept {
    floor_ = cursor_;
    return marker(cursor_, this, blocks_);
  }
  // Effects: frees everything allocated since the marker was made. Requires: it is valid, and of this arena; no frame
  // that began after it is open.
  void rewind(const marker& place) noexcept {
    if constexpr (Checks::enabled)
      if (!blocks_.check_rewind(place.cursor_, place.origin_, this)) return;
    rewind_to(place.cursor_);
    floor_ = place.cursor_;
  }
  // Effects: frees everything. Markers end, but for those of the empty arena. Requires: no frame is open that began
  // with something allocated.
  void clear() noexcept {
    if constexpr (Checks::enabled)
      if (!blocks_.check_clear()) return;
    rewind_to(begin_);
    floor_ = begin_;
  }

  // Effects: frees a block, if it is the last one and no marker was made since; else nothing. What its alignment
  // skipped stays taken. Requires: it is from here, of this size. Returns: whether it was freed.
  bool try_deallocate_last(void* block, std::size_t size) noexcept {
    auto* const start = static_cast<std::byte*>(block);
    if (!is_last(start, size) || start < floor_) return false;
    if constexpr (Checks::enabled)
      if (!blocks_.check_is_top(start)) return false;
    rewind_to(start);
    return true;
  }
  // Effects: makes a block larger or smaller where it is; its bytes stay. Returns: false, and nothing has changed, if
  // it is not the last, a marker was made since, or there is no room. Requires: it is from here, of this size.
  [[nodiscard]] bool try_resize_last(void* block, std::size_t old_size, std::size_t size) noexcept {
    auto* const start = static_cast<std::byte*>(block);
    if (!is_last(start, old_size) || start < floor_) return false;
    if constexpr (Checks::enabled)
      if (!blocks_.check_is_top(start)) return false;
    size += size == 0;
    const std::size_t room = static_cast<std::size_t>(end_ - start);
    if (room < blocks::fence || size > room - blocks::fence) return false;
    std::byte* const cursor = start + size + blocks::fence;
    if constexpr (Checks::enabled) blocks_.resize_top(start, cursor_, cursor);
    cursor_ = cursor;
    return true;
  }

  // Returns: how many bytes are taken, with what alignments skip.
  [[nodiscard]] std::size_t used() const noexcept { return static_cast<std::size_t>(cursor_ - begin_); }
  [[nodiscard]] std::size_t capacity() const noexcept { return static_cast<std::size_t>(end_ - begin_); }
  [[nodiscard]] bool empty() const noexcept { return cursor_ == begin_; }
  // Returns: whether an address lies in the caller's block.
  [[nodiscard]] bool contains(const void* address) const noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(begin_) < capacity();
  }

 private:
  template <class>
  friend class marker_resource;

  marker_arena(void* block, std::size_t bytes, const detail::reporter<Checks>& report) noexcept
      : begin_(static_cast<std::byte*>(block)),
        end_(begin_ + bytes),
        cursor_(begin_),
        floor_(begin_),
        blocks_(begin_, report) {}

  bool is_last(const std::byte* block, std::size_t size) const noexcept {
    size += size == 0;
    return reinterpret_cast<std::uintptr_t>(block) + size + blocks::fence == reinterpret_cast<std::uintptr_t>(cursor_);
  }
  void rewind_to(std::byte* cursor) noexcept {
    if constexpr (Checks::enabled)
      cursor_ = blocks_.drop_to(cursor, cursor_);
    else
      cursor_ = cursor;
  }
  void end(frame& ending) noexcept {
    if constexpr (Checks::enabled)
      if (!blocks_.close(ending) || !blocks_.check_rewind(ending.marker_.cursor_, ending.marker_.origin_, this)) return;
    rewind_to(ending.marker_.cursor_);
    floor_ = ending.floor_;
  }

  std::byte* const begin_;
  std::byte* const end_;
  std::byte* cursor_;  // the end of what is used
  std::byte* floor_;   // the last marker: blocks before it are not freed one by one
  [[no_unique_address]] blocks blocks_;
};

}  // namespace sluice
