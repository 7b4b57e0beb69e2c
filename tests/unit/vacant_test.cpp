// Vacant pages: what lies between blocks in use goes back to the system, nothing else does, and it comes back when it
// is handed out. The owner here is a cache that no thread uses.
#include "heap/sparse.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap/slab.hpp"
#include "os/memory.hpp"
#include "random_blocks.hpp"
#include "start_region.hpp"

namespace {

using namespace sluice;
using test::Random;

ThreadCache owner;

struct Held {
  unsigned char* block;
  unsigned char seed;
};

class VacantTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { test::start_region(); }
  void SetUp() override {
    if (!vacant::gives_back || os::page_size() == unit_size) GTEST_SKIP() << "no page of a slab goes back by itself";
  }
  void TearDown() override {
    {
      const MutexLock held(owner.lock);
      for (const Held& h : held_)
        put(h.block);
      slab::destroy_empty(owner);
      EXPECT_EQ(owner.slab_count, 0u);
      EXPECT_EQ(owner.vacancy.free_bytes, 0u);
      EXPECT_EQ(owner.vacancy.slab_units, 0u);
    }
    expect_valid();
  }

  // Gives all vacant pages back. Returns: how many bytes.
  static size_t give_back() SLUICE_REQUIRES(owner.lock) {
    size_t bytes = 0;
    for (bool walks = sparse::begin(owner, 0, 0); walks; walks = sparse::is_asked(owner))
      bytes += sparse::go_on(owner);
    return bytes;
  }

  static void expect_valid() {
    const char* const wrong = heap::validate().what;
    EXPECT_EQ(wrong, nullptr) << wrong;
  }

  // Takes all that one call of take_blocks gives of the first slab of the class; of a new one where there is none.
  std::vector<unsigned char*> take(unsigned k, uint32_t most) SLUICE_REQUIRES(owner.lock) {
    Unit* const s = owner.partial[k] != unit_index_none ? region::unit_at(owner.partial[k]) : slab::create(owner, k);
    std::vector<unsigned char*> blocks;
    for (void* block = slab::take_blocks(s, most).first; block != nullptr; block = next_of(block))
      blocks.push_back(static_cast<unsigned char*>(block));
    for (unsigned char* block : blocks) {
      held_.push_back({block, static_cast<unsigned char>(held_.size())});
      std::memset(block, held_.back().seed, class_sizes[k]);
    }
    return blocks;
  }

  // Fills `count` slabs of the class.
  std::vector<unsigned char*> fill(unsigned k, size_t count) SLUICE_REQUIRES(owner.lock) {
    std::vector<unsigned char*> all;
    while (all.size() < count * slab::blocks_per_slab(k)) {
      std::vector<unsigned char*> some = take(k, UINT16_MAX);
      std::sort(some.begin(), some.end());  // a slab may begin with another block than its first
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }

  static void put(void* block) {
    set_next(block, nullptr);
    EXPECT_EQ(slab::put_list(*slab::of(block)->owner.load(std::memory_order_relaxed), block).rest, nullptr);
  }
  void free_at(size_t i) SLUICE_REQUIRES(owner.lock) {
    put(held_[i].block);
    held_[i] = held_.back();
    held_.pop_back();
  }
  void free_block(unsigned char* block) SLUICE_REQUIRES(owner.lock) {
    size_t i = 0;
    while (held_[i].block != block)
      ++i;
    free_at(i);
  }

  void expect_intact() const {
    for (const Held& h : held_) {
      const size_t size = class_sizes[slab::of(h.block)->slab.size_class];
      ASSERT_EQ(h.block[0], h.seed);
      ASSERT_EQ(std::memcmp(h.block, h.block + 1, size - 1), 0);
    }
  }

  // Fills slabs with blocks of 512 bytes and frees those of every second page.
  void fill_by_halves(size_t slabs) SLUICE_REQUIRES(owner.lock) {
    const std::vector<unsigned char*> blocks = fill(size_class_of(512), slabs);
    for (unsigned char* block : blocks)
      if ((reinterpret_cast<uintptr_t>(block) / os::page_size()) % 2 != 0) put(block);
    std::erase_if(held_,
                  [](const Held& h) { return (reinterpret_cast<uintptr_t>(h.block) / os::page_size()) % 2 != 0; });
  }

  static size_t resident(const Unit* s) {
    return os::resident_bytes(slab::start_of(s), s->units * unit_size, unit_size);
  }

  // Frees all blocks of a slab of the class but the one in the middle.
  void expect_pages_to_go(unsigned k) {
    const size_t page = os::page_size();
    const MutexLock held(owner.lock);
    const std::vector<unsigned char*> blocks = fill(k, 1);
    const Unit* const s = slab::of(blocks[0]);
    const size_t before = resident(s);
    for (size_t i = 0; i < blocks.size(); ++i)
      if (i != blocks.size() / 2) free_block(blocks[i]);
    const size_t bytes = give_back();
    EXPECT_EQ(resident(s), before - bytes) << class_sizes[k];
    EXPECT_LE(before - bytes, class_sizes[k] + 2 * page) << class_sizes[k];
    expect_intact();
    EXPECT_EQ(give_back(), 0u) << "what is gone is dropped again";
    free_at(0);
    slab::destroy_empty(owner);
  }

  std::vector<Held> held_;
};

// Slabs of several units, which have several pages on any system.
class VacantLongSlabTest : public VacantTest {
 protected:
  void SetUp() override {
    if (!vacant::gives_back) GTEST_SKIP() << "no page of a slab goes back by itself";
  }
};

TEST_F(VacantTest, pages_without_a_block_in_use_go_and_the_others_stay) {
  for (const size_t size : {64, 512, 1536, 4096})
    expect_pages_to_go(size_class_of(size));
}

TEST_F(VacantLongSlabTest, pages_without_a_block_in_use_go_and_the_others_stay) {
  for (const size_t size : {20480, 40960, 65536})
    expect_pages_to_go(size_class_of(size));
}

TEST_F(VacantTest, what_was_never_carved_is_left_alone) {
  const MutexLock held(owner.lock);
  const unsigned k = size_class_of(1024);
  const std::vector<unsigned char*> blocks = take(k, UINT16_MAX);
  free_block(blocks[0]);
  const Unit* const s = slab::of(blocks[0]);
  EXPECT_EQ(give_back(), 0u);
  for (size_t i = 1; i < blocks.size(); ++i)
    free_block(blocks[i]);
  const size_t before = resident(s);
  EXPECT_EQ(give_back(), os::page_size());
  EXPECT_EQ(resident(s), before - os::page_size());
}

TEST_F(VacantTest, blocks_on_pages_in_memory_come_first_and_then_a_page_at_a_time) {
  const MutexLock held(owner.lock);
  const unsigned k = size_class_of(1024);
  const size_t in_a_page = os::page_size() / 1024;
  const std::vector<unsigned char*> blocks = fill(k, 1);
  Unit* const s = slab::of(blocks[0]);
  const size_t pages = unit_size / os::page_size() > 4 ? 3 : 2;  // the first ones go
  for (size_t i = 0; i < pages * in_a_page; ++i)
    free_block(blocks[i]);
  ASSERT_EQ(give_back(), pages * os::page_size());
  EXPECT_TRUE(s->slab.at_end);
  const size_t in_memory = (pages + 1) * in_a_page + 1;
  free_block(blocks[in_memory]);
  EXPECT_FALSE(s->slab.at_end);
  EXPECT_EQ(take(k, 100), std::vector<unsigned char*>{blocks[in_memory]});
  EXPECT_TRUE(s->slab.at_end);
  EXPECT_EQ(take(k, 100), std::vector<unsigned char*>(blocks.begin(), blocks.begin() + static_cast<long>(in_a_page)));
  EXPECT_EQ(take(k, 1), std::vector<unsigned char*>{blocks[in_a_page]});
  EXPECT_FALSE(s->slab.at_end) << "the rest of that page is in memory now";
  EXPECT_EQ(vacant::validate(s, slab::free_bits(s)), nullptr);
  EXPECT_EQ(take(k, 100).size(), in_a_page - 1);
  for (size_t page = 2; page < pages; ++page)
    EXPECT_EQ(take(k, 100).size(), in_a_page);
  EXPECT_FALSE(s->slab.has_absent);
  EXPECT_EQ(owner.partial[k], unit_index_none);
}

TEST_F(VacantTest, fuller_slabs_serve_first_and_those_without_a_page_in_memory_last) {
  const MutexLock held(owner.lock);
  const unsigned k = size_class_of(512);
  const size_t per_slab = slab::blocks_per_slab(k);
  const std::vector<unsigned char*> blocks = fill(k, 3);
  const auto slab_at = [&](size_t i) { return region::index_of(slab::of(blocks[i * per_slab])); };
  const size_t in_a_page = os::page_size() / 512;
  for (size_t i = 0; i < per_slab; ++i) {
    if (i < 2 * in_a_page) free_block(blocks[i]);                 // two whole pages of the first
    if (i % in_a_page == 1) free_block(blocks[per_slab + i]);     // a block of each page of the second
    if (i > 2 * in_a_page) free_block(blocks[2 * per_slab + i]);  // most of the third
  }
  (void)give_back();
  EXPECT_EQ(owner.partial[k], slab_at(1));
  EXPECT_EQ(region::unit_at(slab_at(1))->slab.next, slab_at(2)) << "a block of it lies in memory";
  EXPECT_EQ(region::unit_at(owner.partial[k])->slab.prev, slab_at(0));
  while (owner.partial[k] != unit_index_none)
    (void)take(k, 1);
  expect_intact();
}

TEST_F(VacantTest, any_order_of_calls_keeps_contents_and_accounts) {
  Random random(7);
  size_t given_back = 0;
  const unsigned classes[] = {size_class_of(48),   size_class_of(320),   size_class_of(1024), size_class_of(2560),
                              size_class_of(6144), size_class_of(28672), size_class_of(65536)};
  for (int step = 0; step < 3000; ++step) {
    {
      const MutexLock held(owner.lock);
      const unsigned k = classes[random.below(std::size(classes))];
      if (random.chance(45)) (void)take(k, static_cast<uint32_t>(1 + random.below(40)));
      for (uint64_t n = random.below(random.chance(2) ? 2000 : 40); n != 0 && !held_.empty(); --n)
        free_at(random.below(held_.size()));
      if (random.chance(10)) given_back += give_back();
    }
    if (step % 10 == 0) expect_valid();
    if (step % 100 == 0) expect_intact();
    ASSERT_FALSE(HasFailure()) << "step " << step;
  }
  EXPECT_GT(given_back, size_t{1} << 20);
}

TEST_F(VacantTest, a_walk_stops_early_where_somebody_waits_for_the_lock) {
  const size_t slabs = 80 * os::page_size() / 4096;  // larger pages take fewer calls
  uint64_t walked[2];
  for (const bool is_wanted : {false, true}) {
    owner.lock.lock();
    fill_by_halves(slabs);
    std::thread other([is_wanted] {
      if (is_wanted) const MutexLock held(owner.lock);
    });
    while (is_wanted && !owner.lock.is_wanted())
      std::this_thread::yield();
    const uint64_t before = owner.vacancy.slabs_walked;
    ASSERT_TRUE(sparse::begin(owner, 0, 0));
    EXPECT_NE(sparse::go_on(owner), 0u);
    walked[is_wanted ? 1 : 0] = owner.vacancy.slabs_walked - before;
    EXPECT_EQ(sparse::is_asked(owner), is_wanted);
    owner.lock.unlock();
    other.join();
    const MutexLock held(owner.lock);
    while (sparse::is_asked(owner))
      (void)sparse::go_on(owner);
  }
  EXPECT_EQ(walked[0], slabs);
  EXPECT_LT(walked[1], slabs / 4);
}

TEST_F(VacantTest, a_portion_of_a_walk_is_small) {
  constexpr size_t slabs = 1200;
  const MutexLock held(owner.lock);
  fill_by_halves(slabs);
  ASSERT_TRUE(sparse::begin(owner, 0, 0));
  while (sparse::is_asked(owner))
    EXPECT_LE(sparse::go_on(owner), (10u << 20) * (os::page_size() == 4096 ? 1 : 2));  // by fewer calls
  EXPECT_GE(owner.vacancy.absent_bytes, slabs * unit_size / 2 - unit_size);
}

TEST_F(VacantTest, a_walk_passes_by_slabs_into_which_nothing_was_freed) {
  constexpr size_t slabs = 40;
  const MutexLock held(owner.lock);
  fill_by_halves(slabs);
  EXPECT_NE(give_back(), 0u);
  uint64_t before = owner.vacancy.slabs_walked;
  free_at(0);
  free_at(held_.size() - 1);
  (void)give_back();
  EXPECT_LE(owner.vacancy.slabs_walked - before, 2u);
  before = owner.vacancy.slabs_walked;
  EXPECT_EQ(give_back(), 0u);
  EXPECT_EQ(owner.vacancy.slabs_walked, before);
  expect_valid();
}

TEST_F(VacantTest, a_slab_that_changes_hands_takes_its_accounts_along) {
  static ThreadCache other;
  const MutexLock held(owner.lock);
  ASSERT_TRUE(other.lock.try_lock());
  const std::vector<unsigned char*> blocks = fill(size_class_of(512), 1);
  Unit* const s = slab::of(blocks[0]);
  for (size_t i = 1; i < blocks.size(); ++i)
    free_block(blocks[i]);
  EXPECT_NE(give_back(), 0u);
  slab::change_owner(s, other);
  EXPECT_EQ(owner.vacancy.free_bytes, 0u);
  EXPECT_EQ(other.vacancy.free_bytes, (blocks.size() - 1) * 512);
  EXPECT_EQ(vacant::validate(s, slab::free_bits(s)), nullptr);
  slab::change_owner(s, owner);
  EXPECT_EQ(other.vacancy.slab_units, 0u);
  other.lock.unlock();
}

}  // namespace
