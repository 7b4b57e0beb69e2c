// Snapshot: what it says of a heap that does not count is found in the heap's own structures, and switching counts off
// does not spoil it.
#include "stats/snapshot.hpp"

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "heap/heap.hpp"
#include "heap/large.hpp"
#include "heap_calls.hpp"
#include "os/memory.hpp"
#include "stats/unit_parts.hpp"
#include "without_stand_ins.hpp"

namespace {

using namespace sluice;
using stats::Snapshot;

const bool nothing_is_counted = unsetenv("SLUICE_STATS") == 0 && unsetenv("SLUICE_STATS_SIGNAL") == 0;

Snapshot snapshot() {
  Snapshot s;
  stats::take_snapshot(&s);
  return s;
}

std::vector<void*> allocate_many(size_t count, size_t size) {
  std::vector<void*> blocks(count);
  for (void*& block : blocks) {
    block = test::allocate(size);
    std::memset(block, 1, size);
  }
  return blocks;
}

void free_many(const std::vector<void*>& blocks) {
  for (void* block : blocks)
    heap::free(block);
}

TEST(Snapshot, live_blocks_are_those_that_the_program_holds) {
  const unsigned k = size_class_of(100);
  const Snapshot before = snapshot();
  EXPECT_FALSE(before.counting);
  const std::vector<void*> blocks = allocate_many(1234, 100);
  const Snapshot between = snapshot();
  EXPECT_EQ(between.classes[k].live_blocks - before.classes[k].live_blocks, 1234u);
  EXPECT_EQ(between.live_bytes - before.live_bytes, 1234u * class_sizes[k]);
  free_many(blocks);
  const Snapshot after = snapshot();
  EXPECT_EQ(after.classes[k].live_blocks, before.classes[k].live_blocks);
  EXPECT_EQ(after.live_bytes, before.live_bytes);
}

TEST(Snapshot, blocks_in_caches_and_freed_by_other_threads_are_not_live) {
  const unsigned k = size_class_of(200);
  const Snapshot before = snapshot();
  const std::vector<void*> blocks = allocate_many(5000, 200);
  std::thread([&] { free_many(blocks); }).join();
  const Snapshot after = snapshot();
  EXPECT_EQ(after.classes[k].live_blocks, before.classes[k].live_blocks);
  EXPECT_LE(after.classes[k].live_blocks + after.classes[k].cached_blocks, after.classes[k].carved_blocks);
}

TEST(Snapshot, large_spans_count_by_usable_bytes) {
  const Snapshot before = snapshot();
  void* block = test::allocate(300'001);
  const Snapshot after = snapshot();
  EXPECT_EQ(after.large.live_spans - before.large.live_spans, 1u);
  EXPECT_EQ(after.large.live_bytes - before.large.live_bytes, heap::usable_size(block));
  heap::free(block);
}

TEST(Snapshot, parts_are_never_larger_than_the_whole) {
  const std::vector<void*> small = allocate_many(30'000, 150);
  const std::vector<void*> large = allocate_many(20, 500'000);
  const Snapshot s = snapshot();
  uint64_t slab_bytes = 0;
  for (unsigned k = 1; k < size_class_count; ++k) {
    EXPECT_LE(s.classes[k].carved_blocks * s.classes[k].block_size, s.classes[k].slab_bytes);
    EXPECT_EQ(s.classes[k].block_size, class_sizes[k]);
    slab_bytes += s.classes[k].slab_bytes;
  }
  EXPECT_LE(s.live_bytes + s.cached_bytes, s.active_bytes);
  EXPECT_LE(slab_bytes + s.large.live_bytes, s.active_bytes);
  EXPECT_LE(s.active_bytes + s.retained_bytes, s.mapped_bytes);
  EXPECT_LE(s.mapped_bytes, s.reserved_bytes);
  EXPECT_LE(s.metadata_bytes, s.mapped_bytes);
  EXPECT_LE(s.resident_bytes, s.mapped_bytes);
  EXPECT_GE(s.resident_bytes, 30'000u * 150 + 20 * 500'000);
  free_many(small);
  free_many(large);
}

uint64_t sum(const stats::ResidentFigures& f) {
  return f.slab_bytes + f.large_bytes + f.arena_bytes + f.free_bytes + f.own_bytes;
}

TEST(Snapshot, resident_memory_is_told_by_what_it_serves_for) {
  (void)heap::trim(0);
  const Snapshot before = snapshot();
  EXPECT_EQ(sum(before.resident), before.resident_bytes);
  EXPECT_GT(before.resident.own_bytes, 0u);  // this thread's cache
  const std::vector<void*> small = allocate_many(30'000, 150);
  const std::vector<void*> large = allocate_many(20, 500'000);
  const Snapshot full = snapshot();
  EXPECT_EQ(sum(full.resident), full.resident_bytes);
  const auto grown = [&](uint64_t stats::ResidentFigures::*figure) {
    return static_cast<int64_t>(full.resident.*figure - before.resident.*figure);
  };
  EXPECT_GE(grown(&stats::ResidentFigures::slab_bytes), 30'000 * 160 - 200'000);
  EXPECT_LE(grown(&stats::ResidentFigures::slab_bytes), 30'000 * 160 + 400'000);
  EXPECT_GE(grown(&stats::ResidentFigures::large_bytes), 20 * 500'000);
  EXPECT_LE(grown(&stats::ResidentFigures::large_bytes), static_cast<int64_t>(20 * (500'000 + os::page_size())));
  free_many(large);
  const Snapshot after = snapshot();
  EXPECT_EQ(sum(after.resident), after.resident_bytes);
  EXPECT_LE(after.resident.large_bytes, before.resident.large_bytes);
  EXPECT_LE(after.resident.free_bytes, after.retained_bytes);
  free_many(small);
}

TEST(Snapshot, figures_are_the_same_and_ask_for_no_pages) {
  const std::vector<void*> small = allocate_many(3'000, 150);
  const Snapshot whole = snapshot();
  Snapshot figures;
  stats::take_figures(&figures);
  EXPECT_GT(whole.resident_bytes, 0u);
  EXPECT_EQ(figures.resident_bytes, 0u);
  EXPECT_EQ(sum(figures.resident), 0u);
  EXPECT_EQ(figures.live_bytes, whole.live_bytes);
  EXPECT_EQ(figures.active_bytes, whole.active_bytes);
  EXPECT_EQ(figures.retained_bytes, whole.retained_bytes);
  EXPECT_EQ(std::memcmp(figures.classes, whole.classes, sizeof whole.classes), 0);
  free_many(small);
}

// As if every page were in memory: runs of pages reach over units that serve for something else.
TEST(UnitParts, share_a_run_among_the_units_that_it_reaches_over) {
  const std::vector<void*> small = allocate_many(3'000, 150);
  const std::vector<void*> large = allocate_many(2, 300'000);
  const Snapshot s = snapshot();
  stats::UnitParts parts;
  EXPECT_FALSE(parts);
  cache::lock_all();
  parts.note();
  cache::unlock_all();
  ASSERT_TRUE(parts);
  stats::ResidentFigures figures{};
  parts.add(figures, 0, parts.count() * unit_size);
  uint64_t slab_bytes = 0;
  for (const stats::ClassFigures& each : s.classes)
    slab_bytes += each.slab_bytes;
  EXPECT_EQ(figures.slab_bytes, slab_bytes);
  EXPECT_EQ(figures.large_bytes, s.active_bytes - slab_bytes);
  EXPECT_EQ(sum(figures), parts.count() * unit_size);
  stats::ResidentFigures same{};
  for (size_t at = 0; at < parts.count() * unit_size; at += 4096)
    parts.add(same, at, 4096);
  EXPECT_EQ(std::memcmp(&same, &figures, sizeof same), 0);
  free_many(small);
  free_many(large);
}

TEST(Snapshot, a_large_block_that_nobody_wrote_to_is_live_and_not_resident) {
  (void)heap::trim(0);
  const Snapshot before = snapshot();
  void* const block = test::allocate(64 << 20);
  const Snapshot after = snapshot();
  EXPECT_GE(after.live_bytes - before.live_bytes, 64u << 20);
  EXPECT_LE(after.resident.large_bytes, before.resident.large_bytes + (1 << 20));
  heap::free(block);
}

TEST(Snapshot, threads_are_counted_as_they_come_and_go) {
  const Snapshot before = snapshot();
  std::thread([&] {
    heap::free(test::allocate(1));
    EXPECT_EQ(snapshot().threads.live, before.threads.live + 1);
  }).join();
  const Snapshot after = snapshot();
  EXPECT_EQ(after.threads.live, before.threads.live);
  EXPECT_EQ(after.threads.started, before.threads.started + 1);
  EXPECT_GE(after.threads.peak, before.threads.live + 1);
}

TEST(Snapshot, foreign_pointers_show) {
  alignas(16) static char other[64];
  const Snapshot before = snapshot();
  heap::free(other);
  EXPECT_EQ(heap::reallocate(other, 1), nullptr);
  EXPECT_EQ(heap::usable_size(other), 0u);
  const Snapshot after = snapshot();
  EXPECT_EQ(after.foreign.frees - before.foreign.frees, 1u);
  EXPECT_EQ(after.foreign.reallocs - before.foreign.reallocs, 1u);
  EXPECT_EQ(after.foreign.usable_sizes - before.foreign.usable_sizes, 1u);
  EXPECT_EQ(after.foreign.passed_to_libc, before.foreign.passed_to_libc);
}

TEST(Snapshot, live_figures_stay_true_when_counting_stops_in_between) {
  const unsigned k = size_class_of(400);
  (void)snapshot();
  const Snapshot before = snapshot();
  cache::set_counting(true);
  std::vector<void*> blocks;
  std::thread([&] {
    blocks = allocate_many(500, 400);
    cache::set_counting(false);
    const std::vector<void*> more = allocate_many(300, 400);
    blocks.insert(blocks.end(), more.begin(), more.end());
  }).join();
  const Snapshot between = snapshot();
  EXPECT_FALSE(between.counting);
  EXPECT_EQ(between.classes[k].mallocs, 0u);
  EXPECT_EQ(between.classes[k].live_blocks - before.classes[k].live_blocks, 800u);
  free_many(blocks);
  EXPECT_EQ(snapshot().live_bytes, before.live_bytes);
  EXPECT_EQ(heap::validate().what, nullptr);
}

TEST(Snapshot, gives_up_instead_of_waiting_when_a_lock_is_held) {
  (void)snapshot();
  Snapshot s;
  EXPECT_TRUE(stats::try_take_snapshot(&s));
  region::mutex().lock();
  EXPECT_FALSE(stats::try_take_snapshot(&s));
  region::mutex().unlock();
  thread_cache->lock.lock();
  EXPECT_FALSE(stats::try_take_snapshot(&s));
  thread_cache->lock.unlock();
  EXPECT_TRUE(stats::try_take_snapshot(&s));
  EXPECT_EQ(heap::validate().what, nullptr) << "a lock was kept";
}

}  // namespace
