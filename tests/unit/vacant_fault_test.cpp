// When vacant pages go, by a clock that the test sets; and a system that refuses to take them.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap/sparse.hpp"
#include "heap/thread_cache.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "os/memory.hpp"
#include "pages/region.hpp"
#include "random_blocks.hpp"

namespace {

using namespace sluice;
using mock_os::Call;

constexpr size_t mib = size_t{1} << 20;
constexpr size_t size = 1024;

class VacantPolicyTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!vacant::gives_back || os::page_size() == unit_size) GTEST_SKIP() << "no page of a slab goes back by itself";
  }
};

std::string validated() {
  const char* const wrong = heap::validate().what;
  return wrong != nullptr ? wrong : "";
}

std::vector<unsigned char*> fill(size_t bytes) {
  std::vector<unsigned char*> blocks(bytes / size);
  for (size_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = static_cast<unsigned char*>(test::allocate(size));
    std::memset(blocks[i], static_cast<int>(i % 251), size);
  }
  return blocks;
}

// Frees all but one in `kept`, in random order, so that hardly any slab is empty.
void thin_out(std::vector<unsigned char*>& blocks, size_t kept) {
  test::Random random(3);
  std::vector<unsigned char*> most;
  for (size_t i = 0; i < blocks.size(); ++i)
    if (i % kept != 0) most.push_back(std::exchange(blocks[i], nullptr));
  for (size_t i = most.size(); i > 1; --i)
    std::swap(most[i - 1], most[random.below(i)]);
  for (unsigned char* block : most)
    heap::free(block);
}

std::string check_and_free(const std::vector<unsigned char*>& blocks) {
  std::string wrong;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i] == nullptr) continue;
    if (blocks[i][0] != i % 251 || std::memcmp(blocks[i], blocks[i] + 1, size - 1) != 0) wrong = "contents lost";
    heap::free(blocks[i]);
  }
  return wrong.empty() ? validated() : wrong;
}

// Bytes that went from slabs since the records were forgotten: no call there is as long as a unit.
size_t gone() {
  size_t bytes = 0;
  for (const mock_os::Record& record : mock_os::records())
    if (record.call == Call::Purge && !record.failed && record.bytes < unit_size) bytes += record.bytes;
  return bytes;
}

// Blocks come and go, so that whatever the heap has put off comes due.
void use_a_little(size_t bytes = 2 * mib) {
  for (void* block : fill(bytes))
    heap::free(block);
}

TEST_F(VacantPolicyTest, they_go_at_once_when_the_heap_has_shrunk_to_little) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(1'000'000);
              std::vector<unsigned char*> blocks = fill(128 * mib);
              mock_os::forget_records();
              thin_out(blocks, 30);
              if (gone() < 70 * mib) return "only " + std::to_string(gone() / mib) + " MiB went";
              if (std::string wrong = validated(); !wrong.empty()) return wrong;
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(VacantPolicyTest, they_stay_while_little_is_free_and_go_when_they_are_old) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(1'000'000);
              std::vector<unsigned char*> blocks = fill(48 * mib);
              mock_os::forget_records();
              thin_out(blocks, 16);
              use_a_little();
              if (gone() != 0) return "too early";
              mock_os::set_clock(1'000'000 + options.purge_delay + 1);
              use_a_little(4 * mib);
              if (gone() < 24 * mib) return "only " + std::to_string(gone() / mib) + " MiB went";
              if (std::string wrong = validated(); !wrong.empty()) return wrong;
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(VacantPolicyTest, what_is_needed_again_soon_stays_the_next_time) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(1'000'000);
              for (int round = 0; round < 3; ++round) {
                std::vector<unsigned char*> blocks = fill(128 * mib);
                mock_os::forget_records();
                thin_out(blocks, 30);
                const size_t regretted = os::call_counts.regretted_bytes.load();
                if ((gone() != 0) != (round == 0))
                  return "round " + std::to_string(round) + ": " + std::to_string(gone() / mib) + " MiB went";
                std::vector<unsigned char*> more = fill(120 * mib);
                if (round == 0 && os::call_counts.regretted_bytes.load() - regretted < 60 * mib) return "not counted";
                if (std::string wrong = check_and_free(more); !wrong.empty()) return wrong;
                if (std::string wrong = check_and_free(blocks); !wrong.empty()) return wrong;
              }
              return "";
            }),
            "");
}

TEST_F(VacantPolicyTest, a_trim_and_a_rest_give_them_back_and_a_program_that_keeps_all_keeps_them) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              std::vector<unsigned char*> blocks = fill(16 * mib);
              thin_out(blocks, 16);
              mock_os::forget_records();
              heap::idle();
              if (gone() < 8 * mib) return "a rest left them";
              use_a_little();
              std::vector<unsigned char*> more = fill(8 * mib);
              thin_out(more, 16);
              mock_os::forget_records();
              if (!heap::trim(0) || gone() < 3 * mib) return "a trim left them";
              if (std::string wrong = check_and_free(more); !wrong.empty()) return wrong;
              options.purge_delay = 0;
              region::keep_free(SIZE_MAX);
              std::vector<unsigned char*> kept = fill(8 * mib);
              mock_os::forget_records();
              thin_out(kept, 16);
              if (gone() != 0) return "they went although all is kept";
              if (std::string wrong = check_and_free(kept); !wrong.empty()) return wrong;
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(VacantPolicyTest, a_system_that_refuses_loses_nothing_and_is_asked_seldom) {
  for (const unsigned n : {1u, 2u, 100u}) {
    EXPECT_EQ(test::in_child([n]() -> std::string {
                options.purge_delay = 0;
                std::vector<unsigned char*> blocks = fill(16 * mib);
                mock_os::forget_records();
                mock_os::fail_from(Call::Purge, n);
                thin_out(blocks, 16);
                (void)heap::trim(0);
                if (!mock_os::has_failed()) return "nothing failed";
                size_t failed = 0;
                for (const mock_os::Record& record : mock_os::records())
                  failed += record.failed ? 1 : 0;
                if (failed > 400) return std::to_string(failed) + " calls";
                if (std::string wrong = validated(); !wrong.empty()) return wrong;
                mock_os::never_fail();
                mock_os::forget_records();
                (void)heap::trim(0);
                if (gone() < 6 * mib) return "they stay although the system takes them again";
                return check_and_free(blocks);
              }),
              "")
        << n;
  }
}

}  // namespace
