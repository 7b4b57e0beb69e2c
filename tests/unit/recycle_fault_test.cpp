// Moves of free pages that the system refuses, at each of its calls: the program gets its memory and loses nothing.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "fault_stride.hpp"
#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "os/memory.hpp"
#include "pages/region.hpp"
#include "random_blocks.hpp"

namespace {

using namespace sluice;
using mock_os::Call;
using test::Block;

constexpr size_t mib = size_t{1} << 20;
const char nothing_failed[] = "nothing failed";

std::string validated() {
  const char* const wrong = heap::validate().what;
  return wrong != nullptr ? wrong : "";
}

// Large blocks that come, grow and go, so that pages are moved and purged; requests may fail.
std::string churn(unsigned steps, bool grow = true) {
  test::Random random(11);
  std::vector<Block> blocks(12);
  for (unsigned step = 0; step < steps; ++step) {
    Block& block = blocks[random.below(blocks.size())];
    if (block.data != nullptr && !test::intact(block)) return "contents lost at step " + std::to_string(step);
    if (grow && block.data != nullptr && random.chance(25)) {
      const size_t had = block.size;
      const size_t size = had + random.below(mib / 2);
      auto* const grown = static_cast<unsigned char*>(test::calls::reallocate(block.data, size));
      if (grown == nullptr) continue;
      block.data = grown;
      if (!test::intact_after_resize({grown, had, block.seed}, had < size ? had - test::end_bytes : size))
        return "contents lost when resized at step " + std::to_string(step);
      block.size = size;
      test::fill(block);
      continue;
    }
    test::calls::free(block.data);
    block.size = random.chance(30) ? mib / 8 + random.below(mib / 2) : mib + random.below(7 * mib);
    block.seed = static_cast<unsigned char>(1 + random.below(255));
    const bool zeroed = random.chance(25);
    const size_t alignment = !zeroed && random.chance(25) ? 2 * mib : 16;
    block.data = static_cast<unsigned char*>(zeroed           ? test::calls::allocate_zeroed(1, block.size)
                                             : alignment > 16 ? test::calls::allocate_aligned(alignment, block.size)
                                                              : test::allocate(block.size));
    if (block.data == nullptr) continue;
    if (reinterpret_cast<uintptr_t>(block.data) % alignment != 0) return "not aligned";
    if (zeroed && (block.data[0] != 0 || std::memcmp(block.data, block.data + 1, block.size - 1) != 0))
      return "not zero at step " + std::to_string(step);
    test::fill(block);
  }
  for (const Block& block : blocks) {
    if (block.data != nullptr && !test::intact(block)) return "contents lost at the end";
    test::calls::free(block.data);
  }
  return validated();
}

template <typename Arm>
std::string survive(Arm arm) {
  return test::in_child([&]() -> std::string {
    (void)test::allocate(1);
    options.purge_delay = 0;  // a refused move or purge is tried again at once
    region::keep_free(24 * mib);
    if (std::string wrong = churn(25); !wrong.empty()) return wrong;
    arm();
    if (std::string wrong = churn(40); !wrong.empty()) return "with failures: " + wrong;
    const bool failed = mock_os::has_failed();
    mock_os::never_fail();
    if (std::string wrong = churn(20); !wrong.empty()) return "after the failures: " + wrong;
    (void)heap::trim(0);
    const MutexLock held(region::mutex());
    const region::Figures now = region::figures();
    if (now.committed_bytes - now.free_clean_bytes > 3 * mib) return "address space leaked";
    return failed ? "" : nothing_failed;
  });
}

unsigned sweep(Call call, void (*arm)(Call, unsigned), bool unmaps) {
  const unsigned stride = test::fault_stride(secure ? 9 : 5);
  for (unsigned n = 1;; n += stride) {
    const std::string result = survive([&] {
      if (unmaps) mock_os::unmap_on_failure();
      arm(call, n);
    });
    if (result == nothing_failed) return n - 1;
    EXPECT_EQ(result, "") << "when call " << n << " failed";
    if (!result.empty() || n > 1000) return n;
  }
}

TEST(RecycleFault, any_one_move_may_fail) {
  EXPECT_GT(sweep(Call::MovePages, mock_os::fail_nth, false), 5u);
}

TEST(RecycleFault, every_move_may_fail) {
  EXPECT_GT(sweep(Call::MovePages, mock_os::fail_from, false), 5u);
}

TEST(RecycleFault, any_one_renewal_may_fail) {
  EXPECT_GT(sweep(Call::Renew, mock_os::fail_nth, false), 5u);
}

#if !defined(__SANITIZE_THREAD__)  // the heap has no place of its own there: others map what it has lost
TEST(RecycleFault, any_one_renewal_may_fail_when_the_old_mapping_is_gone) {
  EXPECT_GT(sweep(Call::Renew, mock_os::fail_nth, true), 5u);
}

TEST(RecycleFault, every_renewal_may_fail_when_the_old_mapping_is_gone) {
  EXPECT_GT(sweep(Call::Renew, mock_os::fail_from, true), 5u);
}
#endif

TEST(RecycleFault, any_call_may_fail) {
  EXPECT_GT(sweep(mock_os::any, mock_os::fail_nth, false), 5u);
}

TEST(RecycleFault, every_call_may_fail) {
  EXPECT_GT(sweep(mock_os::any, mock_os::fail_from, false), 5u);
}

// A system that moves no pages at all: nothing is tried at each request.
TEST(RecycleFault, a_refusal_is_remembered) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)test::allocate(1);
              options.purge_delay = 3'600'000;
              region::keep_free(SIZE_MAX);
              mock_os::fail_from(Call::MovePages, 1);
              if (std::string wrong = churn(60, false); !wrong.empty()) return wrong;
              const size_t calls = mock_os::count(Call::MovePages);
              return calls >= 1 && calls <= 2 ? "" : std::to_string(calls) + " calls";
            }),
            "");
}

#if !defined(SLUICE_SECURE)
// Blocks between which short pieces are free, where one thread is alone. Returns: the blocks.
std::vector<unsigned char*> leave_short_pieces(unsigned count) {
  std::vector<unsigned char*> all, kept;
  for (unsigned i = 0; i < 2 * count; ++i)
    all.push_back(static_cast<unsigned char*>(std::memset(test::allocate(mib / 8), 1, mib / 8)));
  for (unsigned i = 0; i < all.size(); ++i) {
    if (i % 2 == 0)
      test::calls::free(all[i]);
    else
      kept.push_back(all[i]);
  }
  return kept;
}

// 256 at once, and two in each millisecond.
TEST(RecycleFault, short_pieces_are_moved_at_a_bounded_rate) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(1'000'000);
              (void)test::allocate(1);
              region::keep_free(SIZE_MAX);
              (void)leave_short_pieces(1000);
              const auto moved = [](unsigned blocks) {
                const size_t before = mock_os::count(Call::MovePages);
                for (unsigned i = 0; i < blocks; ++i)
                  (void)test::allocate(mib / 2);
                return mock_os::count(Call::MovePages) - before;
              };
              if (const size_t pieces = moved(100); pieces != 256) return std::to_string(pieces) + " at once";
              mock_os::set_clock(1'000'010);
              const size_t pieces = moved(100);
              return pieces == 20 ? validated() : std::to_string(pieces) + " in 10 ms";
            }),
            "");
}

// Where address space is limited, 32 MiB out of nothing may be all that is left of it.
// 16 MiB and little more stay in memory of what is freed here.
TEST(RecycleFault, a_block_of_32_mib_and_more_takes_pages_of_others_for_half_of_it_or_where_address_space_is_limited) {
  struct Case {
    bool limited;
    unsigned freed;  // of 4 MiB each
    size_t block;
    bool moves;
  };
  for (const Case& c : {Case{false, 8, 48 * mib, false}, {true, 8, 48 * mib, true}, {false, 5, 32 * mib, true}})
    EXPECT_EQ(test::in_child([c]() -> std::string {
                if (c.limited) mock_os::set_address_space_limit(512 * mib);
                (void)test::allocate(1);
                std::vector<void*> all;
                for (unsigned i = 0; i < 16; ++i)
                  all.push_back(std::memset(test::allocate(4 * mib), 1, 4 * mib));
                for (unsigned i = 0; i < c.freed; ++i)
                  test::calls::free(all[2 * i]);
                const size_t before = mock_os::count(Call::MovePages);
                if (test::allocate(c.block) == nullptr) return "no memory";
                const bool moved = mock_os::count(Call::MovePages) != before;
                return moved == c.moves ? validated() : moved ? "moved" : "not moved";
              }),
              "")
        << c.limited << ", " << c.block / mib << " MiB";
}

unsigned char* allocate_written(size_t size) {
  return static_cast<unsigned char*>(std::memset(test::allocate(size), 1, size));
}

// The first move takes the mapping of the clean part behind the block away and does not bring the pages, and that part
// cannot be mapped again.
TEST(RecycleFault, a_growing_block_whose_new_part_loses_its_mapping_is_whole_elsewhere) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the heap has no place of its own here: others map what it has lost";
#endif
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)test::allocate(1);
              region::keep_free(SIZE_MAX);
              std::vector<unsigned char*> pieces;
              for (unsigned i = 0; i < 80; ++i)
                pieces.push_back(allocate_written(mib / 8));
              Block block{};
              block.size = 2 * mib;
              block.data = static_cast<unsigned char*>(test::allocate(block.size));
              block.seed = 7;
              test::fill(block);
              unsigned char* const before = allocate_written(mib / 2);
              unsigned char* const clean = allocate_written(mib);
              unsigned char* const behind = allocate_written(mib / 2);
              if (before < block.data || clean < before || behind < clean || behind > block.data + 5 * mib)
                return "not side by side";
              test::calls::free(clean);
              (void)heap::trim(0);
              for (unsigned i = 0; i < pieces.size(); i += 2)
                test::calls::free(pieces[i]);
              test::calls::free(before);
              test::calls::free(behind);
              mock_os::forget_records();
              mock_os::fail_first(mock_os::any, 2);
              auto* const grown = static_cast<unsigned char*>(test::calls::reallocate(block.data, 4 * mib));
              const std::vector<mock_os::Record> calls = mock_os::records();
              if (calls.size() < 2 || calls[0].call != Call::MovePages || calls[1].call != Call::Renew)
                return "it was not the new part that was lost";
              if (grown == nullptr || grown == block.data) return "not moved";
              if (!test::intact_after_resize({grown, 4 * mib, block.seed}, block.size - test::end_bytes))
                return "contents lost";
              std::memset(grown, 1, 4 * mib);
              for (unsigned i = 0; i < 60; ++i)  // whoever gets the place that was lost writes to it
                pieces.push_back(allocate_written(mib / 8));
              if (std::string wrong = validated(); !wrong.empty()) return wrong;
              test::calls::free(grown);
              for (unsigned i = 1; i < pieces.size(); i += i < 80 ? 2 : 1)
                test::calls::free(pieces[i]);
              (void)heap::trim(0);
              const MutexLock held(region::mutex());
              const region::Figures now = region::figures();
              const size_t used = now.committed_bytes - now.free_clean_bytes;
              return used < mib ? "" : std::to_string(used) + " bytes of address space leaked";
            }),
            "");
}
#endif

}  // namespace
