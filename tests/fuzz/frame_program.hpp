// A program with frames: marks and what was allocated after each, every block filled and checked. Open it to change
// what the fuzz targets do with frames.
#pragma once

#include <string>
#include <vector>

#include "frame_chunks.hpp"
#include "random_blocks.hpp"

namespace sluice::test {

// Used by the thread that made it.
class FrameProgram {
 public:
  ~FrameProgram() { rewind(0); }
  FrameProgram() = default;
  FrameProgram(const FrameProgram&) = delete;
  FrameProgram& operator=(const FrameProgram&) = delete;

  static constexpr size_t most_marks = 20;

  // The first thing that was wrong; empty while all is well.
  const std::string& wrong() const noexcept { return wrong_; }

  // Whether there may be no memory; what lives stays whole then.
  void may_run_out(bool may) noexcept { may_run_out_ = may; }

  void mark() {
    if (levels_.size() < most_marks) levels_.push_back({sluice_frame_mark(), {}});
  }
  void rewind(size_t to) {
    if (to >= levels_.size()) return;
    check();
    sluice_frame_rewind(levels_[to].mark);
    levels_.resize(to);
  }
  void allocate(size_t size, size_t alignment, uint8_t seed) {
    if (levels_.empty()) return;
    const Block block{static_cast<unsigned char*>(sluice_frame_alloc(size, alignment)), size, seed};
    if (block.data == nullptr) return refuse();
    if (reinterpret_cast<uintptr_t>(block.data) % alignment != 0) fail("frame: wrong alignment");
    fill(block);
    levels_.back().blocks.push_back(block);
  }
  void grow(size_t number, size_t size) {
    if (levels_.empty() || levels_.back().blocks.empty()) return;
    Block& block = levels_.back().blocks[number % levels_.back().blocks.size()];
    const Block old{static_cast<unsigned char*>(sluice_frame_grow(block.data, block.size, size)), block.size,
                    block.seed};
    if (old.data == nullptr) return refuse();
    if (!intact_after_resize(old, size)) fail("frame: contents lost");
    block = {old.data, size, block.seed};
    fill(block);
  }
  void check() {
    for (const Level& level : levels_)
      for (const Block& block : level.blocks)
        if (!intact(block)) fail("frame: a block changed");
  }

 private:
  void fail(const char* what) {
    if (wrong_.empty()) wrong_ = what;
  }
  void refuse() {
    if (!may_run_out_) fail("frame: no memory");
  }

  struct Level {
    sluice_mark mark;
    std::vector<Block> blocks;
  };
  std::vector<Level> levels_;
  bool may_run_out_ = false;
  std::string wrong_;
};

}  // namespace sluice::test
