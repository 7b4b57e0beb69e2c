// What the walk over the heap says: that all is well, what is wrong, or that it could not look.
#include "heap/validate.hpp"

#include <atomic>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "heap/heap.hpp"
#include "heap/slab.hpp"

namespace {

using namespace sluice;
using heap::Validation;

class Validate : public testing::Test {
 protected:
  void SetUp() override { block = heap::allocate(64); }
  void TearDown() override {
    heap::free(block);
    expect(Validation::Well);
  }
  static void expect(Validation::Outcome outcome) {
    const Validation found = heap::validate();
    EXPECT_EQ(found.outcome, outcome) << (found.what != nullptr ? found.what : "");
    EXPECT_EQ(found.what == nullptr, outcome == Validation::Well);
  }
  void* block = nullptr;
};

TEST_F(Validate, a_heap_that_is_whole_is_well) {
  expect(Validation::Well);
}

TEST_F(Validate, a_miscounted_slab_is_wrong) {
  const uint16_t free_count = slab::of(block)->slab.free_count;
  slab::of(block)->slab.free_count = static_cast<uint16_t>(slab::of(block)->slab.carved + 1);
  expect(Validation::Wrong);
  EXPECT_EQ(heap::validate().what, std::string("slab: blocks miscounted"));
  slab::of(block)->slab.free_count = free_count;
}

TEST_F(Validate, a_signal_handler_that_interrupted_the_heap_learns_that_nobody_looked) {
  ++slab::of(block)->slab.free_count;  // else Well would be an answer too
  {
    const MutexLock held(region::mutex());
    expect(Validation::DidNotLook);
  }
  {
    const MutexLock held(thread_cache->lock);
    expect(Validation::DidNotLook);
  }
  expect(Validation::Wrong);
  --slab::of(block)->slab.free_count;
}

TEST_F(Validate, a_lock_that_another_thread_keeps_is_not_waited_for_for_ever) {
  std::atomic<int> step{0};
  std::thread other([&] {
    const MutexLock held(region::mutex());
    for (step = 1; step != 2;)
      std::this_thread::yield();
  });
  while (step != 1)
    std::this_thread::yield();
  expect(Validation::DidNotLook);
  step = 2;
  other.join();
}

}  // namespace
