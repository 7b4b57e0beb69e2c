// A program over the heap's inner interface: slots that hold blocks, and the operations that malloc's callers use on
// them. Each one checks alignment, usable size, zeroes and that no byte changed. Open it to see what stress and fuzz
// tests do.
#pragma once

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "random_blocks.hpp"

namespace sluice::test {

class HeapProgram {
 public:
  // `most` bytes is the largest random size.
  HeapProgram(size_t slots, uint64_t seed, size_t most = size_t{4} << 20)
      : blocks_(slots), random_(seed), most_(most) {}
  ~HeapProgram() { release_all(); }
  HeapProgram(const HeapProgram&) = delete;
  HeapProgram& operator=(const HeapProgram&) = delete;

  // The first thing that was wrong; empty while all is well.
  const std::string& wrong() const noexcept { return wrong_; }
  size_t slots() const noexcept { return blocks_.size(); }
  Random& random() noexcept { return random_; }

  // Whether the heap may say that there is no memory: null with errno ENOMEM, and realloc keeps the block.
  void may_run_out(bool may) noexcept { may_run_out_ = may; }

  void allocate(size_t slot, size_t size) {
    release(slot);
    accept(slot, test::allocate(size), size, min_alignment);
  }

  void allocate_zeroed(size_t slot, size_t count, size_t size) {
    release(slot);
    void* data = calls::allocate_zeroed(count, size);
    if (data != nullptr && !holds(static_cast<unsigned char*>(data), count * size, 0)) fail("calloc: not zero");
    accept(slot, data, count * size, min_alignment);
  }

  // Requires: alignment is a power of two.
  void allocate_aligned(size_t slot, size_t alignment, size_t size) {
    release(slot);
    accept(slot, calls::allocate_aligned(alignment, size), size, alignment);
  }

  void reallocate(size_t slot, size_t size) {
    Block& block = blocks_[slot];
    if (block.data != nullptr && !intact(block)) fail("changed before realloc");
    Block old = block;
    errno = 0;
    old.data = static_cast<unsigned char*>(calls::reallocate(block.data, size));
    if (old.data == nullptr) return refuse();
    if (!intact_after_resize(old, size)) fail("realloc: contents lost");
    block = {};
    accept(slot, old.data, size, min_alignment);
  }

  void release(size_t slot) {
    discard(take(slot));
    errno = 0;
  }

  void release_all() {
    for (size_t slot = 0; slot < blocks_.size(); ++slot)
      release(slot);
  }

  // Ends a block that may come from another program.
  void discard(const Block& block) {
    if (block.data == nullptr) return;
    if (!intact(block)) fail("changed while it was held");
    calls::free(block.data);
  }

  Block take(size_t slot) noexcept { return std::exchange(blocks_[slot], Block{}); }

  // One operation that the generator chooses.
  void step() {
    const size_t slot = random_.below(blocks_.size());
    const uint64_t choice = random_.below(100);
    if (choice < 45) return allocate(slot, random_.size(most_));
    if (choice < 70) return release(slot);
    if (choice < 80) return allocate_zeroed(slot, 1 + random_.below(4), random_.size(most_ / 4));
    if (choice < 93) return reallocate(slot, 1 + random_.size(most_));
    allocate_aligned(slot, size_t{1} << random_.below(17), random_.size(most_));
  }

 private:
  void fail(const char* what) {
    if (wrong_.empty()) wrong_ = what;
  }

  void refuse() {
    if (!may_run_out_) return fail("no memory");
    if (errno != ENOMEM) fail("no memory, and errno does not say so");
  }

  void accept(size_t slot, void* data, size_t size, size_t alignment) {
    if (data == nullptr) return refuse();
    if (reinterpret_cast<uintptr_t>(data) % std::max(alignment, min_alignment) != 0) fail("wrong alignment");
    if (calls::usable_size(data) < size) fail("usable size is too small");
    blocks_[slot] = {static_cast<unsigned char*>(data), size, static_cast<unsigned char>(random_.next() | 1)};
    fill(blocks_[slot]);
  }

  std::vector<Block> blocks_;
  Random random_;
  size_t most_;
  bool may_run_out_ = false;
  std::string wrong_;
};

}  // namespace sluice::test
