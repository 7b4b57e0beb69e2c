// What the tests of vacant pages (heap/vacant.hpp) share: heaps of 1 KiB blocks that are thinned out, by a clock that
// the test sets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "heap/heap.hpp"
#include "heap/thread_cache.hpp"
#include "heap/vacant.hpp"
#include "heap_calls.hpp"
#include "mock_os.hpp"
#include "os/memory.hpp"
#include "random_blocks.hpp"

namespace sluice::test {

inline constexpr size_t mib = size_t{1} << 20;
inline constexpr size_t size = 1024;
inline constexpr uint64_t beginning = 1'000'000;  // of the clock

class VacantPolicyTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!vacant::gives_back || os::page_size() == unit_size) GTEST_SKIP() << "no page of a slab goes back by itself";
  }
};

inline std::string validated() {
  const char* const wrong = heap::validate().what;
  return wrong != nullptr ? wrong : "";
}

inline std::vector<unsigned char*> fill(size_t bytes) {
  std::vector<unsigned char*> blocks(bytes / size);
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = static_cast<unsigned char*>(allocate(size));
    std::memset(blocks[i], static_cast<int>(i % 251), size);
  }
  return blocks;
}

// One block in so many on pages of 4 KiB: larger pages need larger gaps, but a block of each slab stays.
inline size_t spread(size_t kept) {
  return std::min(kept * (os::page_size() / 4096), unit_size / size);
}

// What goes back with one call at most: that takes the less time the larger the pages are.
inline size_t most_with_one_call() {
  return (os::page_size() == 4096 ? 10 : 25) * mib;
}

// Frees all but one in spread(kept), in random order, so that hardly any slab is empty.
inline void thin_out(std::vector<unsigned char*>& blocks, size_t kept) {
  Random random(3);
  kept = spread(kept);
  std::vector<unsigned char*> most;
  for (size_t i = 0; i < blocks.size(); ++i)
    if (i % kept != 0) most.push_back(std::exchange(blocks[i], nullptr));
  for (size_t i = most.size(); i > 1; --i)
    std::swap(most[i - 1], most[random.below(i)]);
  for (unsigned char* block : most)
    heap::free(block);
}

inline std::string check_and_free(const std::vector<unsigned char*>& blocks) {
  std::string wrong;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i] == nullptr) continue;
    if (blocks[i][0] != i % 251 || std::memcmp(blocks[i], blocks[i] + 1, size - 1) != 0) wrong = "contents lost";
    heap::free(blocks[i]);
  }
  return wrong.empty() ? validated() : wrong;
}

// Bytes that went from slabs since the records were forgotten: no call there is as long as a unit.
inline size_t gone() {
  size_t bytes = 0;
  for (const mock_os::Record& record : mock_os::records())
    if (record.call == mock_os::Call::Purge && !record.failed && record.bytes < unit_size) bytes += record.bytes;
  return bytes;
}

inline std::string mib_gone() {
  return std::to_string(gone() / mib) + " MiB went";
}

inline uint64_t walked() {
  return thread_cache->vacancy.slabs_walked;
}

// Blocks come and go, so that whatever the heap has put off comes due.
inline void use_a_little(size_t bytes = 2 * mib) {
  for (void* block : fill(bytes))
    heap::free(block);
}

// Frees blocks [from, end) but one in spread(kept), in the order of their addresses.
inline void thin_part(std::vector<unsigned char*>& blocks, size_t from, size_t end, size_t kept) {
  kept = spread(kept);
  for (size_t i = from; i < end; ++i)
    if (i % kept != 0) heap::free(std::exchange(blocks[i], nullptr));
}

}  // namespace sluice::test
