// Blocks of a memory resource taken and given back at random, each filled with a value of its own: they are aligned,
// and nobody else writes to them.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <random>
#include <vector>

namespace library_test {

class ResourceModel {
 public:
  ResourceModel(std::pmr::memory_resource& resource, std::mt19937& random) : resource_(resource), random_(random) {}

  // `size()` and `alignment()` say what is taken; one in `last_first` blocks given back is the one taken last.
  template <class Size, class Alignment>
  void run(int steps, unsigned last_first, Size size, Alignment alignment) {
    for (int step = 0; step < steps; ++step) {
      const bool is_growing = step / 250 % 2 == 0;
      if (live_.empty() || random_() % 8 < (is_growing ? 5u : 2u)) {
        take(size(), alignment());
      } else {
        give_back(random_() % last_first == 0 ? live_.size() - 1 : random_() % live_.size());
      }
    }
    while (!live_.empty())
      give_back(random_() % live_.size());
  }

 private:
  struct Block {
    unsigned char* start;
    std::size_t size, alignment;
    unsigned char value;
  };

  void take(std::size_t size, std::size_t alignment) {
    auto* const start = static_cast<unsigned char*>(resource_.allocate(size, alignment));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(start) % alignment, 0u);
    const auto value = static_cast<unsigned char>(random_());
    std::memset(start, value, size);
    live_.push_back({start, size, alignment, value});
  }

  void give_back(std::size_t place) {
    const Block block = live_[place];
    bool is_kept = true;
    for (std::size_t i = 0; i < block.size; ++i)
      is_kept = is_kept && block.start[i] == block.value;
    EXPECT_TRUE(is_kept) << "somebody wrote to a block of " << block.size << " bytes";
    resource_.deallocate(block.start, block.size, block.alignment);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(place));
  }

  std::pmr::memory_resource& resource_;
  std::mt19937& random_;
  std::vector<Block> live_;
};

}  // namespace library_test
