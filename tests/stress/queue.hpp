// Blocks on their way between the threads of a stress test. Open it to change how they travel.
#pragma once

#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include "arena_program.hpp"

namespace sluice::test {

// Blocks on their way from one thread to another; what does not fit is refused. It allocates nothing once it is made: a
// fork must not catch another thread inside the system's malloc.
class Queue {
 public:
  Queue() : blocks_(capacity) {}
  // Returns: the block, if there was no room for it.
  Block push(const Block& block) {
    const std::lock_guard guard(lock_);
    if (block.data == nullptr || count_ == capacity) return block;
    blocks_[(first_ + count_++) % capacity] = block;
    return {};
  }
  bool pop(Block& block) {
    const std::lock_guard guard(lock_);
    if (count_ == 0) return false;
    block = blocks_[first_];
    first_ = (first_ + 1) % capacity;
    --count_;
    return true;
  }

 private:
  std::mutex lock_;
  static constexpr size_t capacity = 4096;
  std::vector<Block> blocks_;
  size_t first_ = 0, count_ = 0;
};

inline void discard_all(Queue& queue) {
  ArenaProgram rest(1, 0);
  for (Block block; queue.pop(block);)
    rest.discard(block);
  EXPECT_EQ(rest.wrong(), "");
}

}  // namespace sluice::test
