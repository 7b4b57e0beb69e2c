// Double frees that are found when a cache gives its blocks back, where the process is to go on
// (SLUICE_ABORT_ON_CORRUPTION=0): a list that was freed into twice is a circle, which must come to an end, and the heap
// serves on. Open it when a flush hangs, or a report is missing. Each case is a process of its own.
#include <csignal>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"

namespace {

using namespace sluice;

constexpr size_t size = 48;
constexpr unsigned seconds_until_it_hangs = 20;

std::vector<char*> some_blocks(size_t count) {
  std::vector<char*> blocks;
  for (size_t i = 0; i < count; ++i)
    blocks.push_back(static_cast<char*>(test::allocate(size)));
  return blocks;
}

// Whether blocks that are allocated now are different ones, and keep what is written to them.
const char* allocate_afterwards() {
  constexpr size_t count = 10'000;
  const std::vector<char*> blocks = some_blocks(count);
  if (std::set<char*>(blocks.begin(), blocks.end()).size() != count) return "a block was handed out twice";
  for (char* block : blocks)
    memset(block, 1, size);
  for (char* block : blocks)
    heap::free(block);
  (void)heap::trim(0);
  const char* const invalid = heap::validate().what;
  return invalid != nullptr ? invalid : "";
}

// Frees blocks[first], blocks[second], blocks[first], in this thread or in another one, and then makes the caches give
// back what they hold.
std::string survive(size_t count, size_t first, size_t second, bool elsewhere) {
  return test::in_child([=]() -> std::string {
    alarm(seconds_until_it_hangs);
    options.abort_on_corruption = false;
    const std::vector<char*> blocks = some_blocks(count);
    const auto attack = [&] {
      heap::free(test::allocate(size));
      for (const size_t i : {first, second, first})
        heap::free(blocks[i]);
      (void)heap::trim(0);
    };
    if (elsewhere)
      std::thread(attack).join();
    else
      attack();
    (void)heap::trim(0);
    return allocate_afterwards();
  });
}

// One after the other, in one word of the slab's bitmap, in two words, in two slabs.
constexpr size_t one_slab = 1000;
struct Case {
  size_t count, first, second;
};
constexpr Case cases[] = {
    {one_slab, 5, 5}, {one_slab, 5, 7}, {one_slab, 5, 500}, {one_slab, 500, 5}, {5 * one_slab, 5, 4 * one_slab}};

TEST(DoubleFree, EndsWhereTheThreadOwnsTheSlab) {
  for (const Case& c : cases)
    EXPECT_EQ(survive(c.count, c.first, c.second, false), "") << c.first << " " << c.second;
}

TEST(DoubleFree, EndsWhereAnotherThreadOwnsTheSlab) {
  for (const Case& c : cases)
    EXPECT_EQ(survive(c.count, c.first, c.second, true), "") << c.first << " " << c.second;
}

// The process is stopped, with a line, by the thread that frees: its list ends nowhere else.
TEST(DoubleFree, StopsTheProcessWhereAnotherThreadOwnsTheSlab) {
  for (const Case& c : cases) {
    EXPECT_EXIT(
        {
          alarm(seconds_until_it_hangs);
          const std::vector<char*> blocks = some_blocks(c.count);
          std::thread([&] {
            heap::free(test::allocate(size));
            for (const size_t i : {c.first, c.second, c.first})
              heap::free(blocks[i]);
            (void)heap::trim(0);
          }).join();
          _exit(0);
        },
        testing::KilledBySignal(SIGABRT), "sluice: double free at 0x")
        << c.first << " " << c.second;
  }
}

}  // namespace
