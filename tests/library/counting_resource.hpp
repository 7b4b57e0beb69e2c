// A memory resource that counts, checks sizes and alignments on the way back, and fails when it is told to. Open it to
// prove that something allocates nothing, leaks nothing, or stays whole when memory runs out.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory_resource>
#include <new>

namespace library_test {

class CountingResource final : public std::pmr::memory_resource {
 public:
  CountingResource() = default;
  ~CountingResource() override { EXPECT_EQ(live_.size(), 0u) << "blocks leaked"; }
  CountingResource(const CountingResource&) = delete;
  CountingResource& operator=(const CountingResource&) = delete;

  std::size_t allocations() const { return allocations_; }
  std::size_t live_blocks() const { return live_.size(); }
  std::size_t live_bytes() const { return live_bytes_; }

  // The allocation after `successes` more of them throws std::bad_alloc, and so do all that follow.
  void fail_after(std::size_t successes) { left_ = successes; }
  void never_fail() { left_ = std::numeric_limits<std::size_t>::max(); }

 private:
  struct Block {
    std::size_t size, align;
  };

  void* do_allocate(std::size_t size, std::size_t align) override {
    if (left_ == 0) throw std::bad_alloc();
    if (left_ != std::numeric_limits<std::size_t>::max()) --left_;
    void* const block = std::pmr::new_delete_resource()->allocate(size, align);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % align, 0u);
    ++allocations_;
    live_bytes_ += size;
    live_[block] = {size, align};
    return block;
  }
  void do_deallocate(void* block, std::size_t size, std::size_t align) override {
    const auto place = live_.find(block);
    if (place == live_.end()) {
      ADD_FAILURE() << "a block came back that is not from here";
      return;
    }
    EXPECT_EQ(place->second.size, size);
    EXPECT_EQ(place->second.align, align);
    live_bytes_ -= place->second.size;
    const Block given = place->second;
    live_.erase(place);
    std::pmr::new_delete_resource()->deallocate(block, given.size, given.align);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  std::size_t allocations_ = 0;
  std::size_t live_bytes_ = 0;
  std::size_t left_ = std::numeric_limits<std::size_t>::max();
  std::map<void*, Block> live_;
};

}  // namespace library_test
