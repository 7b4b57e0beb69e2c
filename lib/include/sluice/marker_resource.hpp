// sluice::marker_resource: a marker_arena as a std::pmr::memory_resource. Open it when containers of a level, a frame
// or a request end together, and their memory should be one block of a known size.
//
//   sluice::marker_resource<> level(16 << 20);
//   std::pmr::vector<Tile> tiles(&level);               // stays
//   {
//     sluice::marker_arena<>::frame work(level.arena());
//     std::pmr::vector<int> path(&level);               // ends before the frame, as objects declared after it do
//   }
//   level.clear();
//
// Deallocating gives memory back only if the block is the last one and no marker was made since; the rest is free after
// a rewind. Containers that are used after a rewind to before their memory was allocated are an error that nothing
// finds: in a frame, those declared outside of it do not grow.
//
// When not: memory is needed without a bound (std::pmr::monotonic_buffer_resource, sluice::frame), or containers live
// long and change much (pool_resource).
//
// Complexity: constant. Memory: what is asked for and what its alignment skips. Full, it throws std::bad_alloc.
// Checked (violation.hpp): as marker_arena; what was not deallocated at the end is no error here.
// Thread-safety: none.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <cstddef>
#include <memory_resource>

#include "sluice/detail/failure.hpp"
#include "sluice/detail/owned_block.hpp"
#include "sluice/marker_arena.hpp"

namespace sluice {

template <class Checks = default_checks>
class marker_resource final : public std::pmr::memory_resource {
 public:
  using arena_type = marker_arena<Checks>;
  using marker = typename arena_type::marker;
  using frame = typename arena_type::frame;

  // Effects: takes one block from upstream, and no further; without a resource, from std::pmr's current default.
  // Throws std::bad_alloc.
  explicit marker_resource(std::size_t bytes, std::pmr::memory_resource* upstream = nullptr, const char* name = "")
      : owned_(upstream != nullptr ? upstream : std::pmr::get_default_resource(), bytes),
        arena_(owned_.block, bytes, detail::reporter<Checks>("marker_resource", this, name)) {}
  // Uses the caller's block, which outlives the resource.
  marker_resource(void* block, std::size_t bytes, const char* name = "")
      : owned_(nullptr, 0), arena_(block, bytes, detail::reporter<Checks>("marker_resource", this, name)) {}
  // Requires: no frame is open.
  ~marker_resource() override { arena_.clear(); }
  marker_resource(const marker_resource&) = delete;
  marker_resource& operator=(const marker_resource&) = delete;

  // As of marker_arena.
  [[nodiscard]] marker mark() noexcept { return arena_.mark(); }
  void rewind(const marker& place) noexcept { arena_.rewind(place); }
  void clear() noexcept { arena_.clear(); }
  [[nodiscard]] std::size_t used() const noexcept { return arena_.used(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return arena_.capacity(); }

  // Returns: the arena, for frames, objects and whatever else is not a container.
  [[nodiscard]] arena_type& arena() noexcept { return arena_; }

 private:
  void* do_allocate(std::size_t size, std::size_t align) override {
    void* const block = arena_.try_allocate(size, align);
    if (block == nullptr) [[unlikely]]
      detail::throw_bad_alloc();
    return block;
  }
  void do_deallocate(void* block, std::size_t size, std::size_t) override { arena_.try_deallocate_last(block, size); }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  const detail::owned_block owned_;
  arena_type arena_;
};

}  // namespace sluice
