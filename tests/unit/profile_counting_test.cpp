// The heap profile counts each allocation once, on whichever way it is served, and samples all of these ways.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "arena/arena.hpp"
#include "arena_calls.hpp"
#include "heap/heap.hpp"
#include "heap/sampling.hpp"
#include "profile/profile.hpp"
#include "profiled.hpp"

#if defined(SLUICE_ARENA)

namespace {

using namespace sluice;
using test::profiled;

constexpr uint64_t never_sampled = uint64_t{1} << 50;  // a rate

// As malloc of the preload.
void* allocate_as_malloc(size_t size) {
  heap::hide(size);
  return heap::allocate<arena::allocate_slow, heap::allocate_slow>(size);
}

// What the body asks for, and by how much the thread comes nearer to its next sample meanwhile.
class Count {
 public:
  size_t ask_for(size_t size) {
    asked_ += static_cast<int64_t>(profile::counted_bytes(size));
    return size;
  }
  std::string check() const {
    const int64_t counted = before_ - thread_cache->profile.until;
    return counted == asked_ ? "" : std::to_string(counted) + " bytes are counted, not " + std::to_string(asked_);
  }

 private:
  const int64_t before_ = thread_cache->profile.until;
  int64_t asked_ = 0;
};

// What the sites say was allocated.
double allocated_bytes() {
  double bytes = 0;
  const profile::Reading now(true);
  for (const profile::Site* site = now.sites().first(); site != nullptr; site = site->next)
    bytes += site->allocated.bytes;
  return bytes;
}

TEST(ProfileCounting, TheShortWayOfMallocCountsEachBlockOnce) {
  EXPECT_EQ(profiled(never_sampled,
                     []() -> std::string {
                       if (thread_cache->profile.limit != max_direct_size + 1) return "it is shut";
                       std::vector<void*> blocks;
                       Count count;
                       for (size_t i = 0; i < 20'000; ++i)
                         blocks.push_back(allocate_as_malloc(count.ask_for(i * 7 % 1025)));
                       const std::string wrong = count.check();
                       for (void* const block : blocks)
                         heap::free(block);
                       return wrong;
                     }),
            "");
}

// So do those of larger and of aligned blocks, which are freed in between, so that bins and recent spans have some.
TEST(ProfileCounting, EveryShortWayCountsEachBlockOnce) {
  EXPECT_EQ(profiled(never_sampled,
                     []() -> std::string {
                       void* blocks[64] = {};
                       Count count;
                       for (size_t i = 0; i < 40'000; ++i) {
                         void*& block = blocks[i * 31 % 64];
                         heap::free(block);
                         const size_t size = count.ask_for(i * 7919 % (i % 3 == 0 ? 400'000 : 70'000));
                         const size_t alignment = i % 2 == 0 ? 16 : size_t{16} << i % 12;
                         block = i % 2 == 0 ? allocate_as_malloc(size) : arena::allocate_aligned(alignment, size);
                         if (reinterpret_cast<uintptr_t>(block) % alignment != 0) return "unaligned";
                       }
                       const std::string wrong = count.check();
                       for (void* const block : blocks)
                         heap::free(block);
                       return wrong;
                     }),
            "");
}

// In scopes, too, of which many stop placing since what they placed stays.
TEST(ProfileCounting, WhatAScopeDoesNotPlaceIsCountedOnce) {
  EXPECT_EQ(profiled(never_sampled,
                     []() -> std::string {
                       std::vector<void*> kept;
                       Count count;
                       size_t placed = 0;
                       size_t calls = 0;
                       for (unsigned i = 0; i < 400; ++i) {
                         const test::Scope scope;
                         void* blocks[300];
                         for (void*& block : blocks) {
                           const size_t size = count.ask_for(calls * 7919 % 2000);
                           block = calls % 3 == 0   ? arena::allocate_zeroed(1, size)
                                   : calls % 3 == 1 ? arena::allocate_aligned(64, size)
                                                    : test::scoped_allocate(size);
                           placed += test::in_chunk(block) ? 1U : 0U;
                           ++calls;
                         }
                         for (size_t k = 0; k < 300; ++k)
                           if (k % 20 == 0)
                             kept.push_back(blocks[k]);  // the vector's memory is the system's
                           else
                             test::scoped_free(blocks[k]);
                       }
                       const std::string wrong = count.check();
                       for (void* const block : kept)
                         test::scoped_free(block);
                       if (placed == calls) return "all was placed";
                       if (placed == 0) return "nothing was placed";
                       if (thread_cache->arena->back_offs == 0) return "no scope stopped placing";
                       return wrong;
                     }),
            "");
}

// The sums over some 400 samples come near what was allocated: 30 % are six deviations.
TEST(ProfileCounting, EveryShortWayIsSampled) {
  constexpr uint64_t rate = uint64_t{1} << 18;
  for (const size_t size : {100, 5000, 50'000, 100'000, 300'000}) {
    for (const size_t alignment : {16, 256}) {
      EXPECT_EQ(profiled(rate,
                         [=]() -> std::string {
                           const size_t count = 400 * rate / size;
                           for (size_t i = 0; i < count; ++i)
                             heap::free(alignment == 16 ? allocate_as_malloc(size)
                                                        : arena::allocate_aligned(alignment, size));
                           const double share = allocated_bytes() / static_cast<double>(count * size);
                           return share > 0.7 && share < 1.3 ? "" : std::to_string(share) + " of it is told";
                         }),
                "")
          << size << " at " << alignment;
    }
  }
}

TEST(ProfileCounting, TheShortWayOfMallocSamplesEveryBlockAtARateOfOne) {
  EXPECT_EQ(profiled(1,
                     []() -> std::string {
                       constexpr size_t count = 500;
                       for (size_t i = 0; i < count; ++i)
                         heap::free(allocate_as_malloc(100));
                       return allocated_bytes() == 100.0 * count ? "" : std::to_string(allocated_bytes());
                     }),
            "");
}

}  // namespace

#endif
