// Free pages that are moved to where a large block needs them: contents, zeroes, the number of mappings, and what stays
// in memory.
#include "pages/recycle.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "os/memory.hpp"
#include "page_faults.hpp"
#include "pages/mappings.hpp"
#include "pages/region.hpp"
#include "random_blocks.hpp"

namespace {

using namespace sluice;
using test::Block;

constexpr size_t mib = size_t{1} << 20;

std::string validated() {
  const char* const wrong = heap::validate().what;
  return wrong != nullptr ? wrong : "";
}

uint64_t recycled_bytes() {
  return os::call_counts.recycled_bytes.load();
}

unsigned char* filled(size_t size, int value) {
  return static_cast<unsigned char*>(std::memset(test::allocate(size), value, size));
}

bool is_zero(const unsigned char* bytes, size_t size) {
  return bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size - 1) == 0;
}

// Frees every second of `count` blocks of 4 MiB, so that no free span has more, and keeps the others.
struct Islands {
  explicit Islands(unsigned count) {
    std::vector<unsigned char*> all;
    for (unsigned i = 0; i < count; ++i)
      all.push_back(filled(4 * mib, static_cast<int>(1 + i % 200)));
    for (unsigned i = 0; i < count; ++i) {
      if (i % 2 == 0)
        test::calls::free(all[i]);
      else
        kept.push_back(all[i]);
    }
  }
  bool whole() const {
    for (const unsigned char* const block : kept)
      if (std::memcmp(block, block + 1, 4 * mib - 1) != 0) return false;
    return true;
  }
  void release() {
    for (unsigned char* const block : kept)
      test::calls::free(block);
    kept.clear();
  }
  std::vector<unsigned char*> kept;
};

std::atomic<uintptr_t> never_woken{0};

unsigned mappings() {
  std::FILE* const file = std::fopen("/proc/self/maps", "r");
  unsigned lines = 0;
  for (int c; (c = std::fgetc(file)) != EOF;)
    lines += c == '\n' ? 1 : 0;
  (void)std::fclose(file);
  return lines;
}

// Large blocks that come and go at random, each with contents of its own; then all of them are freed.
std::string churn(unsigned steps, unsigned slots, size_t least, size_t most, uint64_t seed) {
  test::Random random(seed);
  std::vector<Block> blocks(slots);
  for (unsigned step = 0; step < steps; ++step) {
    Block& block = blocks[random.below(slots)];
    if (block.data != nullptr && !test::intact(block)) return "contents lost at step " + std::to_string(step);
    const size_t size = least + random.below(most - least);
    if (block.data != nullptr && random.chance(20)) {
      const size_t had = block.size;
      block.data = static_cast<unsigned char*>(test::calls::reallocate(block.data, size));
      if (!test::intact_after_resize({block.data, had, block.seed}, had < size ? had - test::end_bytes : size))
        return "contents lost when resized at step " + std::to_string(step);
    } else {
      test::calls::free(block.data);
      const size_t alignment = random.chance(20) ? size_t{1} << (16 + random.below(8)) : 16;
      block.data = static_cast<unsigned char*>(alignment > 16      ? test::calls::allocate_aligned(alignment, size)
                                               : random.chance(20) ? test::calls::allocate_zeroed(1, size)
                                                                   : test::allocate(size));
      if (reinterpret_cast<uintptr_t>(block.data) % alignment != 0) return "not aligned";
    }
    block.size = size;
    block.seed = static_cast<unsigned char>(1 + random.below(255));
    test::fill(block);
    if (step % 64 == 0)
      if (const std::string wrong = validated(); !wrong.empty()) return wrong;
  }
  for (const Block& block : blocks) {
    if (block.data != nullptr && !test::intact(block)) return "contents lost at the end";
    test::calls::free(block.data);
  }
  return validated();
}

// A block of 20 MiB where no free span has more than 4.
std::string takes_pages_of_others(size_t alignment, size_t least_moved) {
  (void)test::allocate(1);
  region::keep_free(SIZE_MAX);
  Islands islands(16);
  const uint64_t before = recycled_bytes();
  void* const block = test::calls::allocate_aligned(alignment, 20 * mib);
  std::memset(block, 7, 20 * mib);
  const uint64_t moved = recycled_bytes() - before;
  if (moved < least_moved) return "only " + std::to_string(moved / mib) + " MiB were moved";
  if (reinterpret_cast<uintptr_t>(block) % alignment != 0) return "not aligned";
  if (!islands.whole()) return "contents of others lost";
  if (std::string wrong = validated(); !wrong.empty()) return wrong;
  test::calls::free(block);
  islands.release();
  return validated();
}

TEST(Recycle, a_block_that_fits_no_free_span_takes_their_pages) {
  EXPECT_EQ(test::in_child([] { return takes_pages_of_others(16, 15 * mib); }), "");
}

TEST(Recycle, an_aligned_block_that_fits_no_free_span_takes_their_pages) {
  EXPECT_EQ(test::in_child([] { return takes_pages_of_others(4 * mib, 19 * mib); }), "");
}

// MiB of others' pages that a block takes.
size_t taken_from_others(size_t size) {
  Islands islands(16);
  const uint64_t before = recycled_bytes();
  (void)test::allocate(size);
  return (recycled_bytes() - before) / mib;
}

// A program may write to little of it, and the pages would stay in memory with it.
TEST(Recycle, a_block_of_32_mib_takes_no_pages_of_others) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              const size_t taken = taken_from_others(31 * mib);
              return taken >= 12 ? validated() : "one of 31 MiB takes " + std::to_string(taken);
            }),
            "");
  EXPECT_EQ(test::in_child([]() -> std::string {
              const size_t taken = taken_from_others(32 * mib);
              return taken == 0 ? validated() : std::to_string(taken) + " MiB";
            }),
            "");
  EXPECT_EQ(test::in_child([]() -> std::string {
              region::keep_free(SIZE_MAX);
              const size_t taken = taken_from_others(32 * mib);
              return taken >= 12 ? validated() : "where free pages stay for good it takes " + std::to_string(taken);
            }),
            "");
}

// Frees every second of 64 blocks of two units, and keeps the others.
std::vector<unsigned char*> leave_short_pieces() {
  std::vector<unsigned char*> all, kept;
  for (int i = 0; i < 64; ++i)
    all.push_back(filled(2 * unit_size - 8192, 1 + i));
  for (size_t i = 0; i < all.size(); ++i) {
    if (i % 2 == 0)
      test::calls::free(all[i]);
    else
      kept.push_back(all[i]);
  }
  return kept;
}

bool are_whole(const std::vector<unsigned char*>& blocks) {
  for (const unsigned char* const block : blocks)
    if (std::memcmp(block, block + 1, 2 * unit_size - 8192 - 1) != 0) return false;
  return true;
}

TEST(Recycle, a_thread_that_is_alone_takes_pieces_of_any_length) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)test::allocate(1);
              region::keep_free(SIZE_MAX);
              const std::vector<unsigned char*> kept = leave_short_pieces();
              const uint64_t before = recycled_bytes();
              (void)filled(mib / 2, 7);
              if (recycled_bytes() - before < mib / 2 - 2 * unit_size) return "pages are faulted";
              const uint64_t moved = recycled_bytes();
              auto* const zeroes = static_cast<unsigned char*>(test::calls::allocate_zeroed(1, mib / 2));
              if (!is_zero(zeroes, mib / 2)) return "not zero";
              if (recycled_bytes() != moved) return "zeroes that nobody may look at take pages";
              return are_whole(kept) ? validated() : "contents of others lost";
            }),
            "");
}

TEST(Recycle, several_threads_move_long_pieces_alone) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)test::allocate(1);
              region::keep_free(SIZE_MAX);
              std::thread([] { test::calls::free(test::allocate(1)); }).join();
              (void)leave_short_pieces();
              const uint64_t before = recycled_bytes();
              (void)filled(mib / 2, 7);
              (void)filled(20 * mib, 8);
              return recycled_bytes() == before ? validated() : "moved";
            }),
            "");
}

#if !defined(SLUICE_SECURE)
// Programs ask for the worst case, and write to the front, which is in memory when the next block of that length comes.
TEST(Recycle, blocks_of_which_the_front_is_written_find_their_pages) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              constexpr unsigned slots = 3, rounds = 600, counted_from = 300;
              constexpr size_t front = 2 * mib;
              void* blocks[slots] = {};
              long before = 0;
              for (unsigned i = 0; i < rounds; ++i) {
                if (i == counted_from) before = test::page_faults();
                test::calls::free(blocks[i % slots]);
                blocks[i % slots] = std::memset(test::allocate(8 * mib + i * 7919 % 64 * 4096), 1, front);
              }
              const auto faults = static_cast<size_t>(test::page_faults() - before);
              const size_t written = (rounds - counted_from) * (front / os::page_size());  // pages
              return faults < written / 10 ? validated() : std::to_string(faults) + " page faults";
            }),
            "");
}

TEST(Recycle, a_block_that_grows_in_place_takes_pages_of_others) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)test::allocate(1);
              region::keep_free(SIZE_MAX);
              const std::vector<unsigned char*> kept = leave_short_pieces();
              unsigned char* block = filled(40 * unit_size, 5);  // behind all others
              const uint64_t before = recycled_bytes();
              for (size_t units = 41; units <= 50; ++units) {
                auto* const grown = static_cast<unsigned char*>(test::calls::reallocate(block, units * unit_size));
                if (grown != block) return "moved";
                std::memset(block + 40 * unit_size, 6, (units - 40) * unit_size);
              }
              if (recycled_bytes() - before < 9 * unit_size) return "pages are faulted";
              if (std::memcmp(block, block + 1, 40 * unit_size - 1) != 0) return "contents lost";
              return are_whole(kept) ? validated() : "contents of others lost";
            }),
            "");
}

// Each piece is a mapping of its own, which a move would have to move: a large block has few.
TEST(Recycle, a_large_block_that_grows_is_moved_and_not_copied) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)test::allocate(1);
              region::keep_free(SIZE_MAX);
              std::vector<unsigned char*> between;
              unsigned char* block = filled(mib, 5);
              for (size_t grown = mib; grown < 200 * mib; grown += 4 * unit_size) {
                if (grown % (4 * mib) == 0)
                  for (unsigned char* const one : leave_short_pieces())
                    between.push_back(one);
                block = static_cast<unsigned char*>(test::calls::reallocate(block, grown));
                std::memset(block + grown - 4 * unit_size, 5, 4 * unit_size);
              }
              const size_t index = unit_index_of(block);
              const size_t pieces = region::mappings_in(index, region::unit_at(index)->units);
              if (pieces > 150) return std::to_string(pieces) + " mappings";
              if (std::memcmp(block, block + 1, 199 * mib) != 0) return "contents lost";
              return are_whole(between) ? validated() : "contents of others lost";
            }),
            "");
}

// What is taken for later may never be looked at.
TEST(Recycle, a_block_that_becomes_many_times_as_large_leaves_pages_where_they_are) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)test::allocate(1);
              region::keep_free(SIZE_MAX);
              Islands islands(16);
              (void)leave_short_pieces();
              for (size_t had : {unit_size * 3 / 2, 3 * mib}) {
                unsigned char* const block = filled(had, 5);
                const uint64_t before = recycled_bytes();
                if (test::calls::reallocate(block, 10 * had) == nullptr) return "no memory";
                if (recycled_bytes() - before > had + 2 * mib)
                  return std::to_string(recycled_bytes() - before) + " bytes";
              }
              return islands.whole() ? validated() : "contents of others lost";
            }),
            "");
}
#endif

TEST(Recycle, what_pages_were_moved_to_reads_as_zero_when_that_was_asked) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)test::allocate(1);
              region::keep_free(SIZE_MAX);
              Islands islands(16);
              auto* const block = static_cast<unsigned char*>(test::calls::allocate_zeroed(1, 20 * mib));
              if (!is_zero(block, 20 * mib)) return "not zero";
              // The places that the pages came from serve as clean ones.
              std::vector<unsigned char*> fresh;
              for (int i = 0; i < 12; ++i) {
                fresh.push_back(static_cast<unsigned char*>(test::calls::allocate_zeroed(1, 4 * mib)));
                if (!is_zero(fresh.back(), 4 * mib)) return "not zero where pages were moved away";
              }
              return islands.whole() ? validated() : "contents of others lost";
            }),
            "");
}

TEST(Recycle, what_is_moved_again_and_again_keeps_contents_and_few_mappings) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)test::allocate(1);
              const unsigned before = mappings();
              if (std::string wrong = churn(1500, 20, mib, 12 * mib, 1); !wrong.empty()) return wrong;
              if (mappings() > before + 2 * region::most_displaced_mappings + 100) return "too many mappings";
              (void)heap::trim(0);
              if (std::string wrong = validated(); !wrong.empty()) return wrong;
              // All is free: what was moved is joined again.
              const unsigned after = mappings();
              return after <= before + 100 ? "" : "mappings stay: " + std::to_string(after - before);
            }),
            "");
}

TEST(Recycle, many_large_blocks_in_random_order_make_few_mappings) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)test::allocate(1);
              region::keep_free(SIZE_MAX);
              test::Random random(3);
              std::vector<void*> blocks(400);
              const unsigned before = mappings();
              for (unsigned i = 0; i < 100'000; ++i) {
                void*& block = blocks[random.below(blocks.size())];
                test::calls::free(block);
                block = test::allocate(100'000 + random.below(8 * mib));
                static_cast<char*>(block)[0] = 1;
              }
              const unsigned made = mappings() - before;
              if (made > 2 * region::most_displaced_mappings + 100) return std::to_string(made) + " mappings";
              return validated();
            }),
            "");
}

// The system does not join what a fork's child maps anew with what it has from its parent.
TEST(Recycle, a_child_of_a_fork_makes_few_mappings) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              const pid_t parent = getpid();
              (void)test::allocate(1);
              if (std::string wrong = churn(200, 20, mib, 12 * mib, 4); !wrong.empty()) return wrong;
              return test::in_child([parent]() -> std::string {
                if (getpid() == parent) return "no child";
                const unsigned before = mappings();
                for (uint64_t seed = 0; seed < 8; ++seed)
                  if (std::string wrong = churn(400, 20, mib, 12 * mib, 5 + seed); !wrong.empty()) return wrong;
                const unsigned after = mappings();
                return after <= before + 2 * region::most_displaced_mappings + 100
                           ? ""
                           : "mappings: " + std::to_string(after - before);
              });
            }),
            "");
}

// It joins what the child maps anew with its like, so that a child that lives on goes on moving pages.
TEST(Recycle, what_a_child_of_a_fork_maps_anew_is_joined_with_its_like) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)test::allocate(1);
              if (std::string wrong = churn(200, 20, mib, 12 * mib, 4); !wrong.empty()) return wrong;
              const auto live_on = []() -> std::string {
                const unsigned before = mappings();
                for (uint64_t seed = 0; seed < 12; ++seed) {
                  if (std::string wrong = churn(400, 20, mib / 8, 12 * mib, 5 + seed); !wrong.empty()) return wrong;
                  (void)heap::trim(0);
                  const unsigned now = mappings();
                  const unsigned more = now > before ? now - before : 0;
                  const uint32_t counted = region::most_displaced_mappings - region::mappings_left();
                  if (more > 2 * counted + 100)
                    return std::to_string(more) + " mappings, counted " + std::to_string(counted);
                }
                const uint32_t left = region::mappings_left();
                return left >= region::most_displaced_mappings * 9 / 10 ? "" : std::to_string(left) + " mappings left";
              };
              if (std::string wrong = test::in_child(live_on); !wrong.empty()) return wrong;
              return test::in_child([live_on]() -> std::string {
                if (std::string wrong = churn(200, 20, mib / 8, 12 * mib, 3); !wrong.empty()) return wrong;
                return test::in_child(live_on);
              });
            }),
            "");
}

// Long spans get a new mapping when they are given back, which the system does not join with what lies beside them.
TEST(Recycle, a_child_of_a_fork_knows_how_many_mappings_it_makes_by_giving_back) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              std::vector<void*> blocks;
              for (unsigned i = 0; i < region::most_displaced_mappings * 11 / 10; ++i) {
                blocks.push_back(test::allocate(2 * mib));
                if (blocks.back() == nullptr) return "no address space";
                *static_cast<char*>(blocks.back()) = 1;
                (void)test::allocate(100'000);  // stays, and lies between them
              }
              return test::in_child([&blocks]() -> std::string {
                const unsigned before = mappings();
                const auto more = [before] { return mappings() > before ? mappings() - before : 0; };
                for (size_t i = 0; i < 100; ++i)
                  test::calls::free(blocks[i]);
                (void)heap::trim(0);
                const uint32_t counted = region::most_displaced_mappings - region::mappings_left();
                if (more() < 100) return "only " + std::to_string(more()) + " mappings";
                if (more() > 2 * counted + 10)
                  return std::to_string(more()) + " mappings, counted " + std::to_string(counted);
                for (size_t i = 100; i < blocks.size(); ++i)
                  test::calls::free(blocks[i]);
                (void)heap::trim(0);
                return more() <= 2 * region::most_displaced_mappings + 100
                           ? validated()
                           : std::to_string(more()) + " mappings at the end";
              });
            }),
            "");
}

// Lists of spans of mixed lengths are not searched to their ends, so that a dirty span that is long enough may be found
// here and not there.
TEST(Recycle, a_span_that_is_longer_than_the_request_keeps_its_rest) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)test::allocate(1);
              region::keep_free(SIZE_MAX);
              const auto bytes = [](size_t units) { return units * unit_size - unit_size / 2; };
              std::vector<void*> between;
              void* const longest = test::allocate(bytes(35));
              between.push_back(test::allocate(bytes(2)));
              std::vector<void*> shorter;
              for (int i = 0; i < 20; ++i) {
                shorter.push_back(test::allocate(bytes(33)));
                between.push_back(test::allocate(bytes(2)));
              }
              test::calls::free(longest);
              for (void* const block : shorter)
                test::calls::free(block);
              auto* const block = filled(bytes(34), 5);
              if (std::string wrong = validated(); !wrong.empty()) return wrong;
              for (void* const other : between)
                test::calls::free(other);
              if (std::string wrong = validated(); !wrong.empty()) return wrong;
              std::vector<unsigned char*> more;
              for (size_t units = 1; units < 60; ++units)
                more.push_back(filled(bytes(units), 9));
              for (size_t i = 0; i < bytes(34); ++i)
                if (block[i] != 5) return "given to another";
              return validated();
            }),
            "");
}

// What a program takes and gives back in rounds stays in memory after the first few.
TEST(Recycle, what_was_missed_is_kept) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)test::allocate(1);
              const auto round = [] {
                std::vector<unsigned char*> blocks;
                for (int i = 0; i < 50; ++i)
                  blocks.push_back(filled(3 * mib, i));
                for (unsigned char* const block : blocks)
                  test::calls::free(block);
              };
              options.purge_delay = 3'600'000;  // so that no epoch ends
              for (int i = 0; i < 4; ++i)
                round();
              const uint64_t before = os::call_counts.purged_bytes.load();
              const uint64_t regretted = os::call_counts.regretted_bytes.load();
              if (regretted == 0) return "nothing was missed";
              for (int i = 0; i < 10; ++i)
                round();
              const uint64_t purged = os::call_counts.purged_bytes.load() - before;
              return purged <= 20 * mib ? validated() : std::to_string(purged / mib) + " MiB went";
            }),
            "");
}

// MiB of free pages in memory after `bytes` in blocks of `size` were filled and freed, recent spans included.
size_t stays(size_t bytes, size_t size) {
  std::vector<unsigned char*> blocks;
  for (size_t i = 0; i < bytes / size; ++i)
    blocks.push_back(filled(size, static_cast<int>(i)));
  for (unsigned char* const block : blocks)
    test::calls::free(block);
  const MutexLock held(region::mutex());
  return region::figures().free_dirty_bytes / mib;
}

// What is freed and not needed again goes at once, but for 16 MiB where more than an eighth of the need is in use, and
// less the more has gone. What was missed stays; what gets old takes that off.
TEST(Recycle, what_is_freed_goes_but_for_what_may_be_needed_again) {
  constexpr size_t small = 1000;
  EXPECT_EQ(test::in_child([]() -> std::string {
              for (size_t i = 0; i < 30 * mib / small; ++i)
                (void)filled(small, 3);
              options.purge_delay = 3'600'000;  // so that nothing gets old
              if (const size_t kept = stays(60 * mib, small); kept > 20)
                return std::to_string(kept) + " MiB of 60 stay at first";
              if (const size_t kept = stays(60 * mib, small); kept < 55)
                return std::to_string(kept) + " MiB of 60 stay although they were missed";
              if (const size_t kept = stays(120 * mib, small); kept < 55 || kept > 80)
                return std::to_string(kept) + " MiB of 120 stay";
              options.purge_delay = 0;
              region::purge_aged();
              os::wait_briefly(never_woken, 0);
              region::purge_aged();
              const size_t kept = stays(30 * mib, small);
              return kept <= 4 ? "" : std::to_string(kept) + " MiB stay although such pages got old";
            }),
            "");
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)test::allocate(1);
              options.purge_delay = 3'600'000;
              const size_t kept = stays(400 * mib, small);
              return kept <= 8 ? "" : std::to_string(kept) + " MiB of 400 stay";
            }),
            "");
}

// Pages cost much more to fill than to give back.
TEST(Recycle, what_blocks_leave_at_the_end_of_a_phase_goes) {
  for (const size_t size : {size_t{1000}, mib / 4, 3 * mib, 40 * mib}) {
    EXPECT_EQ(test::in_child([size]() -> std::string {
                (void)test::allocate(1);
                options.purge_delay = 3'600'000;  // so that no epoch ends
                if (const size_t kept = stays(40 * mib, size); kept > 10)
                  return std::to_string(kept) + " MiB of 40 stay";
                for (int i = 0; i < 3; ++i)
                  (void)stays(40 * mib, size);
                const uint64_t before = os::call_counts.purged_bytes.load();
                for (int i = 0; i < 10; ++i)
                  (void)stays(40 * mib, size);
                const uint64_t purged = os::call_counts.purged_bytes.load() - before;
                return purged <= 8 * mib ? validated() : std::to_string(purged / mib) + " MiB went in ten rounds";
              }),
              "")
        << size;
  }
}

}  // namespace
