// sluice::lifo_resource: a lifo_stack as a std::pmr::memory_resource. Open it when containers of one function or one
// pass of work nest, so that what is allocated last is mostly freed first, and their memory should be one block.
//
//   sluice::lifo_resource<> scratch(64 * 1024);
//   std::pmr::vector<int> open(&scratch);
//   {
//     std::pmr::string line(&scratch);          // grows, and is gone before `open` grows again
//   }
//
// A block may be deallocated in any order, as containers do when they grow: one that is not the last is marked, and
// goes together with the last of those above it. When the block is full, memory comes from the upstream resource.
//
// When not: lifetimes cross (a long-lived block above many short-lived ones keeps them all: use pool_resource or
// malloc), or all ends together (marker_resource is faster).
//
// Complexity: allocating is constant, deallocating amortized constant. Memory: 8 bytes a block, as lifo_stack.
// Checked (violation.hpp): as lifo_stack, but for the order; a deallocation searches the stack. Requests that went
// upstream are only counted.
// Thread-safety: none.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <cstddef>
#include <memory_resource>

#include "sluice/detail/owned_block.hpp"
#include "sluice/lifo_stack.hpp"

namespace sluice {

template <class Checks = default_checks>
class lifo_resource final : public std::pmr::memory_resource {
 public:
  // Effects: takes one block from upstream, where further memory comes from when that is full; without a resource, from
  // std::pmr's current default. Throws std::bad_alloc.
  explicit lifo_resource(std::size_t bytes, std::pmr::memory_resource* upstream = nullptr, const char* name = "")
      : upstream_(upstream != nullptr ? upstream : std::pmr::get_default_resource()),
        owned_(upstream_, bytes),
        stack_(owned_.block, bytes, detail::reporter<Checks>("lifo_resource", this, name)) {}
  // Uses the caller's block, which outlives the resource. Without a resource, std::bad_alloc is thrown when it is full.
  lifo_resource(void* block, std::size_t bytes, std::pmr::memory_resource* upstream = nullptr, const char* name = "")
      : upstream_(upstream != nullptr ? upstream : std::pmr::null_memory_resource()),
        owned_(upstream_, 0),
        stack_(block, bytes, detail::reporter<Checks>("lifo_resource", this, name)) {}
  // Requires: everything is deallocated, or release() says that the rest is not needed.
  ~lifo_resource() override {
    if constexpr (Checks::enabled)
      if (others_.count != 0) stack_.report_.number(violation_kind::leak, others_.count);
  }
  lifo_resource(const lifo_resource&) = delete;
  lifo_resource& operator=(const lifo_resource&) = delete;

  // Effects: frees the whole stack. What came from upstream stays, and is to be deallocated.
  void release() noexcept { stack_.clear(); }

  // Returns: how many bytes of the block are taken, with headers and what alignments skip; and how many there are.
  [[nodiscard]] std::size_t used() const noexcept { return stack_.used(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return stack_.capacity(); }
  [[nodiscard]] std::pmr::memory_resource* upstream_resource() const noexcept { return upstream_; }

 private:
  template <bool Counted, class = void>
  struct upstream_requests {
    std::size_t count = 0;
  };
  template <class Dummy>
  struct upstream_requests<false, Dummy> {};

  void* do_allocate(std::size_t size, std::size_t align) override {
    void* const block = stack_.try_allocate(size, align);
    if (block == nullptr) [[unlikely]]
      return allocate_upstream(size, align);
    return block;
  }
  void do_deallocate(void* block, std::size_t size, std::size_t align) override {
    if (stack_.contains(block)) [[likely]]
      stack_.release_in_any_order(block);
    else
      deallocate_upstream(block, size, align);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  [[gnu::cold, gnu::noinline]] void* allocate_upstream(std::size_t size, std::size_t align) {
    void* const block = upstream_->allocate(size, align);
    if constexpr (Checks::enabled) ++others_.count;
    return block;
  }
  [[gnu::cold, gnu::noinline]] void deallocate_upstream(void* block, std::size_t size, std::size_t align) {
    if constexpr (Checks::enabled) {
      if (others_.count == 0) {
        stack_.report_.block(violation_kind::foreign, block);
        return;
      }
      --others_.count;
    }
    upstream_->deallocate(block, size, align);
  }

  std::pmr::memory_resource* const upstream_;
  const detail::owned_block owned_;
  lifo_stack<Checks> stack_;
  [[no_unique_address]] upstream_requests<Checks::enabled> others_;
};

}  // namespace sluice
