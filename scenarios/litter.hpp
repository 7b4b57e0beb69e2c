// A heap that has been used for long: objects of mixed sizes, most of them freed in random order. Open it to change
// what lies on the heap before a scenario builds among the holes.
#pragma once

#include <utility>

#include "common.hpp"

namespace scenario {

class Litter {
 public:
  Litter(std::uint64_t objects, std::uint64_t seed)
      : sizes_(65536, seed, object_size), blocks_(objects), tags_(objects), freed_(objects * 6 / 10) {}

  std::uint64_t objects() const { return blocks_.length(); }

  /// How many of the objects are freed: 60 %.
  std::uint64_t freed() const { return freed_; }

  void build() {
    for (std::uint64_t i = 0; i < objects(); ++i)
      blocks_[i] = allocate_tagged(sizes_[i], i);
  }

  /// Puts the blocks in random order, so that freeing reads their addresses in sequence and every cache miss in it is
  /// the allocator's. tags_[i] becomes the tag of blocks_[i].
  void shuffle(std::uint64_t seed) {
    Random random(seed);
    for (std::size_t i = 0; i < objects(); ++i)
      tags_[i] = static_cast<std::uint32_t>(i);
    for (std::size_t i = objects() - 1; i > 0; --i) {
      const std::size_t other = random.below(static_cast<std::uint32_t>(i + 1));
      std::swap(blocks_[i], blocks_[other]);
      std::swap(tags_[i], tags_[other]);
    }
  }

  /// Frees the first 60 % in the order of the shuffle.
  void free_most() {
    for (std::uint64_t i = 0; i < freed_; ++i)
      std::free(blocks_[i]);
  }

  /// Whether the objects that are left hold what was written to them.
  bool intact() const {
    std::uint64_t damage = 0;
    for (std::uint64_t i = freed_; i < objects(); ++i)
      damage |= tag_of(blocks_[i]) ^ tags_[i];
    return damage == 0;
  }

 private:
  SizeCycle sizes_;
  Table<void*> blocks_;
  Table<std::uint32_t> tags_;
  std::uint64_t freed_;
};

}  // namespace scenario
