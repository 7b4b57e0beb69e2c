// A block of a memory resource that goes back by itself. A member of this type stands before what uses the block, so
// that it is destroyed after it.
#pragma once

#include <cstddef>
#include <memory_resource>

namespace sluice::detail {

struct owned_block {
  // Throws std::bad_alloc. With 0 bytes, `block` is null.
  owned_block(std::pmr::memory_resource* from, std::size_t size)
      : resource(from), block(size == 0 ? nullptr : from->allocate(size)), bytes(size) {}
  ~owned_block() {
    if (block != nullptr) resource->deallocate(block, bytes);
  }
  owned_block(const owned_block&) = delete;
  owned_block& operator=(const owned_block&) = delete;

  std::pmr::memory_resource* resource;
  void* block;
  std::size_t bytes;
};

}  // namespace sluice::detail
