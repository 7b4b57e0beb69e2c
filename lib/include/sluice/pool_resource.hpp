// sluice::pool_resource: a std::pmr::memory_resource that serves blocks of up to one size from a pool. Open it when
// node-based containers (list, map, set, unordered_map) allocate many nodes of one size.
//
//   sluice::pool_resource<64> nodes;
//   std::pmr::map<int, float> prices(&nodes);   // a node of it takes 48 bytes
//
// When not: sizes differ widely (std::pmr::unsynchronized_pool_resource), everything ends together (marker_resource),
// threads share it, or you make the objects yourself (pool<T>).
//
// Complexity: constant; growing is rare (the blocks double). Memory: each block takes BlockSize, rounded up to
// BlockAlign, and no less than a pointer. Requests that no block fits go to the upstream resource one by one.
// Checked (violation.hpp): as pool<T>; for requests that went upstream only their number at the end.
// Thread-safety: none, as for unsynchronized_pool_resource.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <cstddef>
#include <memory_resource>

#include "sluice/detail/block_pool.hpp"
#include "sluice/violation.hpp"

namespace sluice {

template <std::size_t BlockSize, std::size_t BlockAlign = alignof(std::max_align_t), class Checks = default_checks>
class pool_resource final : public std::pmr::memory_resource {
 public:
  static constexpr std::size_t block_size = BlockSize;
  static constexpr std::size_t block_align = BlockAlign;

  // Effects: takes memory for `blocks` blocks from upstream; without one, from std::pmr's current default.
  // Throws std::bad_alloc.
  explicit pool_resource(std::size_t blocks = 0, std::pmr::memory_resource* upstream = nullptr, const char* name = "")
      : blocks_(upstream != nullptr ? upstream : std::pmr::get_default_resource(),
                detail::reporter<Checks>("pool_resource", this, name)),
        others_(this, name) {
    blocks_.reserve(blocks);
  }
  // Requires: everything is deallocated, or release() says that the rest is not needed.
  ~pool_resource() override = default;
  pool_resource(const pool_resource&) = delete;
  pool_resource& operator=(const pool_resource&) = delete;

  // Effects: gives all blocks back to upstream, used or not. What was too large for a block stays, and is to be
  // deallocated. Afterwards the resource is as if new, with a capacity of 0.
  void release() noexcept { blocks_.drop_all(); }

  // Effects: afterwards `blocks` blocks fit without taking memory. Throws std::bad_alloc.
  void reserve(std::size_t blocks) { blocks_.reserve(blocks); }

  // Returns: how many blocks are in use (unchecked, by counting the free ones), and how many can be without taking
  // memory.
  [[nodiscard]] std::size_t size() const noexcept { return blocks_.in_use(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return blocks_.capacity(); }
  [[nodiscard]] std::pmr::memory_resource* upstream_resource() const noexcept { return blocks_.upstream(); }

 private:
  // How many requests of other sizes are with upstream.
  template <class Policy, bool = Policy::enabled>
  class other_requests {
   public:
    other_requests(const void* owner, const char* name) noexcept : report_("pool_resource", owner, name) {}
    ~other_requests() {
      if (count_ != 0) report_.number(violation_kind::leak, count_);
    }
    other_requests(const other_requests&) = delete;
    other_requests& operator=(const other_requests&) = delete;
    void allocated() noexcept { ++count_; }
    bool deallocated(const void* block, bool is_of_pool) {
      if (count_ == 0 || is_of_pool) {
        report_.block(violation_kind::foreign, block);
        return false;
      }
      --count_;
      return true;
    }

   private:
    std::size_t count_ = 0;
    detail::reporter<Policy> report_;
  };
  template <class Policy>
  class other_requests<Policy, false> {
   public:
    other_requests(const void*, const char*) noexcept {}
    void allocated() noexcept {}
    bool deallocated(const void*, bool) noexcept { return true; }
  };

  void* do_allocate(std::size_t size, std::size_t align) override {
    if (size <= BlockSize && align <= BlockAlign) [[likely]]
      return blocks_.acquire();
    return allocate_upstream(size, align);
  }
  void do_deallocate(void* block, std::size_t size, std::size_t align) override {
    if (size <= BlockSize && align <= BlockAlign) [[likely]]
      blocks_.release(block);
    else
      deallocate_upstream(block, size, align);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  [[gnu::noinline]] void* allocate_upstream(std::size_t size, std::size_t align) {
    void* const block = blocks_.upstream()->allocate(size, align);
    others_.allocated();
    return block;
  }
  [[gnu::noinline]] void deallocate_upstream(void* block, std::size_t size, std::size_t align) {
    const bool is_of_pool = Checks::enabled && blocks_.owns(block);  // it was allocated with another size
    if (others_.deallocated(block, is_of_pool)) blocks_.upstream()->deallocate(block, size, align);
  }

  detail::block_pool<BlockSize, BlockAlign, Checks> blocks_;
  [[no_unique_address]] other_requests<Checks> others_;
};

}  // namespace sluice
