// Blocks on their way between the threads of a stress test. Open it to change how they travel.
#pragma once

#include <gtest/gtest.h>

#include "arena_program.hpp"
#include "bounded_queue.hpp"

namespace sluice::test {

class Queue {
 public:
  // Returns: the block, if there was no room for it.
  Block push(const Block& block) { return block.data == nullptr || blocks_.push(block) ? Block{} : block; }
  bool pop(Block& block) { return blocks_.pop(block); }

 private:
  BoundedQueue<Block> blocks_;
};

inline void discard_all(Queue& queue) {
  ArenaProgram rest(1, 0);
  for (Block block; queue.pop(block);)
    rest.discard(block);
  EXPECT_EQ(rest.wrong(), "");
}

}  // namespace sluice::test
