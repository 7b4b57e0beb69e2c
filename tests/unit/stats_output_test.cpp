// The statistics to the byte: JSON and text of a snapshot in which no two figures are equal, and of an empty one. Open
// it when the output of statistics is meant to change.
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "stats/figures.hpp"
#include "stats/writers.hpp"

namespace {

using namespace sluice;
using stats::Snapshot;

int append(void* text, const char* data, size_t size) noexcept {
  static_cast<std::string*>(text)->append(data, size);
  return 0;
}

template <typename Write>
std::string written(Write write, const Snapshot& snapshot) {
  std::string text;
  char buffer[61];
  Print out(buffer, sizeof buffer, append, &text);
  write(out, snapshot, stats::ProcessInfo{1234, "sqlite3", "9.8.7"});
  EXPECT_EQ(out.finish(), 0);
  return text;
}
std::string text_of(const Snapshot& snapshot) {
  return written([](Print& out, const auto&... rest) { stats::write_text(out, rest...); }, snapshot);
}
std::string json_of(const Snapshot& snapshot) {
  return written([](Print& out, const auto&... rest) { stats::write_json(out, rest...); }, snapshot);
}

Snapshot empty_snapshot() {
  Snapshot s;
  std::memset(&s, 0, sizeof s);
  return s;
}

// In the order of the JSON, the n-th figure is 1,000,000 + n, of those of resident memory 2,000,000 + n.
Snapshot distinct_snapshot() {
  Snapshot s = empty_snapshot();
  uint64_t next = 1000000;
  const auto fill = [&next](auto& figures, const auto& table) {
    for (const auto& each : table)
      figures.*each.member = ++next;
  };
  s.counting = true;
  fill(s, stats::total_figures);
  for (const unsigned c : {1u, size_class_of(384), size_class_count - 1}) {
    fill(s.classes[c], stats::class_figures);
    s.classes[c].block_size = class_sizes[c];
  }
  fill(s.large, stats::large_figures);
  fill(s.arena, stats::arena_figures);
  fill(s.threads, stats::thread_figures);
  fill(s.os, stats::os_figures);
  fill(s.foreign, stats::foreign_figures);
  next = 2000000;
  fill(s.resident, stats::resident_figures);
  return s;
}

TEST(StatisticsOutput, json_is_this_to_the_byte) {
  EXPECT_EQ(json_of(distinct_snapshot()), R"({
  "schema": "sluice-stats",
  "schema_version": 1,
  "version": "9.8.7",
  "pid": 1234,
  "program": "sqlite3",
  "counting": true,
  "allocated_bytes": 1000001,
  "freed_bytes": 1000002,
  "live_bytes": 1000003,
  "peak_live_bytes": 1000004,
  "requested_bytes": 1000005,
  "mallocs": 1000006,
  "frees": 1000007,
  "active_bytes": 1000008,
  "resident_bytes": 1000009,
  "reserved_bytes": 1000010,
  "mapped_bytes": 1000011,
  "metadata_bytes": 1000012,
  "retained_bytes": 1000013,
  "cached_bytes": 1000014,
  "resident": {"slab_bytes": 2000001, "large_bytes": 2000002, "arena_bytes": 2000003, "free_bytes": 2000004, "own_bytes": 2000005},
  "classes": [
    {"block_size": 16, "mallocs": 1000015, "frees": 1000016, "requested_bytes": 1000017, "allocated_bytes": 16000240, "freed_bytes": 16000256, "live_bytes": 16000288, "live_blocks": 1000018, "peak_live_blocks": 1000019, "cached_blocks": 1000020, "slabs": 1000021, "slab_bytes": 1000022, "carved_blocks": 1000023},
    {"block_size": 384, "mallocs": 1000024, "frees": 1000025, "requested_bytes": 1000026, "allocated_bytes": 384009216, "freed_bytes": 384009600, "live_bytes": 384010368, "live_blocks": 1000027, "peak_live_blocks": 1000028, "cached_blocks": 1000029, "slabs": 1000030, "slab_bytes": 1000031, "carved_blocks": 1000032},
    {"block_size": 65536, "mallocs": 1000033, "frees": 1000034, "requested_bytes": 1000035, "allocated_bytes": 65538162688, "freed_bytes": 65538228224, "live_bytes": 65538359296, "live_blocks": 1000036, "peak_live_blocks": 1000037, "cached_blocks": 1000038, "slabs": 1000039, "slab_bytes": 1000040, "carved_blocks": 1000041}
  ],
  "large": {"mallocs": 1000042, "frees": 1000043, "requested_bytes": 1000044, "allocated_bytes": 1000045, "freed_bytes": 1000046, "live_bytes": 1000047, "live_spans": 1000048, "peak_live_bytes": 1000049},
  "arena": {"scopes": 1000050, "objects": 1000051, "requested_bytes": 1000052, "bytes": 1000053, "freed_bytes": 1000054, "live_bytes": 1000055, "lifo_frees": 1000056, "out_of_order_frees": 1000057, "remote_frees": 1000058, "grown_in_place": 1000059, "chunks": 1000060, "hot_chunks": 1000061, "pinned_chunks": 1000062, "pinned_bytes": 1000063, "chunks_opened": 1000064, "chunks_recycled": 1000065, "back_offs": 1000066, "stale_leaves": 1000067, "abandoned_scopes": 1000068, "depth_overflows": 1000069, "frame_chunks": 1000070, "frame_bytes": 1000071, "frame_chunks_opened": 1000072},
  "threads": {"live": 1000073, "peak": 1000074, "started": 1000075, "caches": 1000076},
  "os": {"mmap_calls": 1000077, "munmap_calls": 1000078, "mremap_calls": 1000079, "mprotect_calls": 1000080, "madvise_calls": 1000081, "failed_calls": 1000082, "purged_bytes": 1000083, "regretted_bytes": 1000084, "unneeded_bytes": 1000085, "recycled_bytes": 1000086, "slabs_made_again": 1000087, "background_looks": 1000088, "purged_bytes_at_rest": 1000089, "huge_bytes": 1000090, "huge_pauses": 1000091, "memory_nodes": 1000092, "far_bytes": 1000093},
  "foreign": {"frees": 1000094, "reallocs": 1000095, "usable_sizes": 1000096, "passed_to_libc": 1000097, "late_calls": 1000098, "deepbinds_cleared": 1000099}
}
)");
  EXPECT_EQ(json_of(empty_snapshot()), R"({
  "schema": "sluice-stats",
  "schema_version": 1,
  "version": "9.8.7",
  "pid": 1234,
  "program": "sqlite3",
  "counting": false,
  "allocated_bytes": 0,
  "freed_bytes": 0,
  "live_bytes": 0,
  "peak_live_bytes": 0,
  "requested_bytes": 0,
  "mallocs": 0,
  "frees": 0,
  "active_bytes": 0,
  "resident_bytes": 0,
  "reserved_bytes": 0,
  "mapped_bytes": 0,
  "metadata_bytes": 0,
  "retained_bytes": 0,
  "cached_bytes": 0,
  "resident": {"slab_bytes": 0, "large_bytes": 0, "arena_bytes": 0, "free_bytes": 0, "own_bytes": 0},
  "classes": [],
  "large": {"mallocs": 0, "frees": 0, "requested_bytes": 0, "allocated_bytes": 0, "freed_bytes": 0, "live_bytes": 0, "live_spans": 0, "peak_live_bytes": 0},
  "arena": {"scopes": 0, "objects": 0, "requested_bytes": 0, "bytes": 0, "freed_bytes": 0, "live_bytes": 0, "lifo_frees": 0, "out_of_order_frees": 0, "remote_frees": 0, "grown_in_place": 0, "chunks": 0, "hot_chunks": 0, "pinned_chunks": 0, "pinned_bytes": 0, "chunks_opened": 0, "chunks_recycled": 0, "back_offs": 0, "stale_leaves": 0, "abandoned_scopes": 0, "depth_overflows": 0, "frame_chunks": 0, "frame_bytes": 0, "frame_chunks_opened": 0},
  "threads": {"live": 0, "peak": 0, "started": 0, "caches": 0},
  "os": {"mmap_calls": 0, "munmap_calls": 0, "mremap_calls": 0, "mprotect_calls": 0, "madvise_calls": 0, "failed_calls": 0, "purged_bytes": 0, "regretted_bytes": 0, "unneeded_bytes": 0, "recycled_bytes": 0, "slabs_made_again": 0, "background_looks": 0, "purged_bytes_at_rest": 0, "huge_bytes": 0, "huge_pauses": 0, "memory_nodes": 0, "far_bytes": 0},
  "foreign": {"frees": 0, "reallocs": 0, "usable_sizes": 0, "passed_to_libc": 0, "late_calls": 0, "deepbinds_cleared": 0}
}
)");
}

TEST(StatisticsOutput, text_is_this_to_the_byte) {
  EXPECT_EQ(text_of(distinct_snapshot()), R"(sluice 9.8.7: pid 1234, sqlite3

totals
  allocated      977 KiB           1,000,001 bytes in        1,000,006 mallocs
  freed          977 KiB           1,000,002 bytes in        1,000,007 frees
  live           977 KiB           1,000,003 bytes in        4,000,129 blocks
  peak live      977 KiB           1,000,004 bytes
  requested      977 KiB           1,000,005 bytes, rounded up to blocks by 0.0 %
  active         977 KiB           1,000,008 bytes of slabs, large blocks and chunks in use
  resident       977 KiB           1,000,009 bytes of the mapped ones in memory
  mapped         977 KiB           1,000,011 bytes of address space, readable and writable
  reserved       977 KiB           1,000,010 bytes of address space, set aside
  metadata       977 KiB           1,000,012 bytes of descriptors and thread caches
  retained       977 KiB           1,000,013 bytes of free pages not yet given back
  cached         977 KiB           1,000,014 bytes of free blocks in thread caches

resident memory: 10.00 times what is live
  slabs         1.91 MiB  20.0 %  0 B live, 977 KiB in caches, 977 KiB between
  large blocks  1.91 MiB  20.0 %  977 KiB live
  arenas        1.91 MiB  20.0 %  977 KiB live
  free pages    1.91 MiB  20.0 %  not yet given back
  heap's own    1.91 MiB  20.0 %  thread caches

most of what is live
 65,536 bytes   61.0 GiB 6553816.3 %  1,000,036 blocks
    384 bytes    366 MiB 38400.9 %  1,000,027 blocks
     16 bytes   15.3 MiB 1600.0 %  1,000,018 blocks
  arenas         977 KiB 100.0 %
  large          977 KiB 100.0 %  1,000,048 blocks

size classes (block in bytes; live and peak in blocks; use: live part of the slabs)
  block       mallocs         frees        live        peak  slabs    space     use lost to rounding
     16     1,000,015     1,000,016   1,000,018   1,000,019 1,000,021  977 KiB 1600.0 % 14.3 MiB  93.7 %
    384     1,000,024     1,000,025   1,000,027   1,000,028 1,000,030  977 KiB 38399.8 %  365 MiB  99.7 %
 65,536     1,000,033     1,000,034   1,000,036   1,000,037 1,000,039  977 KiB 6553573.8 % 61.0 GiB 100.0 %

others
  large       1,000,042 mallocs (977 KiB), 1,000,043 frees (977 KiB); 0.0 % lost to rounding
              1,000,048 live (977 KiB), peak 977 KiB
  arena       1,000,050 scopes, 1,000,051 objects (977 KiB)
              1,000,056 freed in reverse order, 1,000,057 in another,
              1,000,058 by other threads; 1,000,059 grown in place
              977 KiB live in 1,000,060 chunks, 1,000,061 of them empty
              977 KiB free in 1,000,062 chunks that survivors pin
              1,000,064 chunks opened, 1,000,065 holes used again,
              1,000,066 back-offs
              1,000,067 stale leaves, 1,000,068 scopes never left,
              1,000,069 scopes opened too deep
  frames      977 KiB in 1,000,070 chunks; 1,000,072 opened
  threads     1,000,073 now, 1,000,074 at most, 1,000,075 in all; 1,000,076 caches made
  system      1,000,077 mmap, 1,000,078 munmap, 1,000,079 mremap, 1,000,080 mprotect
              1,000,081 madvise; 1,000,082 calls failed; 977 KiB given back
              977 KiB needed again soon after, 977 KiB kept in vain, 977 KiB moved
              1,000,087 slabs made again for classes that caches had evicted
              1,000,088 looks by the thread sluice, 977 KiB given back by it
              977 KiB asked for in huge pages, 1,000,091 pauses
              1,000,092 memory nodes, 977 KiB passed on between them
  not ours    1,000,094 frees, 1,000,095 reallocs, 1,000,096 size queries; 1,000,097 passed to libc
  late calls  1,000,098 on threads without a cache
  dlopen      1,000,099 calls lost RTLD_DEEPBIND
)");
  EXPECT_EQ(text_of(empty_snapshot()), R"(sluice 9.8.7: pid 1234, sqlite3
mallocs, frees and peaks were not counted: that needs SLUICE_STATS=1 from the start,
and no SLUICE_STATS_COUNT=0

totals
  live               0 B                   0 bytes in                0 blocks
  active             0 B                   0 bytes of slabs, large blocks and chunks in use
  resident           0 B                   0 bytes: the system does not tell what is in memory
  mapped             0 B                   0 bytes of address space, readable and writable
  reserved           0 B                   0 bytes of address space, set aside
  metadata           0 B                   0 bytes of descriptors and thread caches
  retained           0 B                   0 bytes of free pages not yet given back
  cached             0 B                   0 bytes of free blocks in thread caches

size classes (block in bytes; live in blocks; use: live part of the slabs)
  block        live  slabs    space     use
    none

others
  large       0 live (0 B)
  threads     0 now, 0 at most, 0 in all; 0 caches made
  system      0 mmap, 0 munmap, 0 mremap, 0 mprotect
              0 madvise; 0 calls failed; 0 B given back
              0 B needed again soon after, 0 B kept in vain, 0 B moved
  not ours    0 frees, 0 reallocs, 0 size queries; 0 passed to libc
  late calls  0 on threads without a cache
)");
}

TEST(StatisticsOutput, text_without_counts_is_this_to_the_byte) {
  Snapshot s = distinct_snapshot();
  s.counting = false;
  EXPECT_EQ(text_of(s), R"(sluice 9.8.7: pid 1234, sqlite3
mallocs, frees and peaks were not counted: that needs SLUICE_STATS=1 from the start,
and no SLUICE_STATS_COUNT=0

totals
  live           977 KiB           1,000,003 bytes in        4,000,129 blocks
  active         977 KiB           1,000,008 bytes of slabs, large blocks and chunks in use
  resident       977 KiB           1,000,009 bytes of the mapped ones in memory
  mapped         977 KiB           1,000,011 bytes of address space, readable and writable
  reserved       977 KiB           1,000,010 bytes of address space, set aside
  metadata       977 KiB           1,000,012 bytes of descriptors and thread caches
  retained       977 KiB           1,000,013 bytes of free pages not yet given back
  cached         977 KiB           1,000,014 bytes of free blocks in thread caches

resident memory: 10.00 times what is live
  slabs         1.91 MiB  20.0 %  0 B live, 977 KiB in caches, 977 KiB between
  large blocks  1.91 MiB  20.0 %  977 KiB live
  arenas        1.91 MiB  20.0 %  977 KiB live
  free pages    1.91 MiB  20.0 %  not yet given back
  heap's own    1.91 MiB  20.0 %  thread caches

most of what is live
 65,536 bytes   61.0 GiB 6553816.3 %  1,000,036 blocks
    384 bytes    366 MiB 38400.9 %  1,000,027 blocks
     16 bytes   15.3 MiB 1600.0 %  1,000,018 blocks
  arenas         977 KiB 100.0 %
  large          977 KiB 100.0 %  1,000,048 blocks

size classes (block in bytes; live in blocks; use: live part of the slabs)
  block        live  slabs    space     use
     16   1,000,018 1,000,021  977 KiB 1600.0 %
    384   1,000,027 1,000,030  977 KiB 38399.8 %
 65,536   1,000,036 1,000,039  977 KiB 6553573.8 %

others
  large       1,000,048 live (977 KiB)
  arena       1,000,050 scopes
              977 KiB live in 1,000,060 chunks, 1,000,061 of them empty
              977 KiB free in 1,000,062 chunks that survivors pin
              1,000,064 chunks opened, 1,000,065 holes used again,
              1,000,066 back-offs
              1,000,067 stale leaves, 1,000,068 scopes never left,
              1,000,069 scopes opened too deep
  frames      977 KiB in 1,000,070 chunks; 1,000,072 opened
  threads     1,000,073 now, 1,000,074 at most, 1,000,075 in all; 1,000,076 caches made
  system      1,000,077 mmap, 1,000,078 munmap, 1,000,079 mremap, 1,000,080 mprotect
              1,000,081 madvise; 1,000,082 calls failed; 977 KiB given back
              977 KiB needed again soon after, 977 KiB kept in vain, 977 KiB moved
              1,000,087 slabs made again for classes that caches had evicted
              1,000,088 looks by the thread sluice, 977 KiB given back by it
              977 KiB asked for in huge pages, 1,000,091 pauses
              1,000,092 memory nodes, 977 KiB passed on between them
  not ours    1,000,094 frees, 1,000,095 reallocs, 1,000,096 size queries; 1,000,097 passed to libc
  late calls  1,000,098 on threads without a cache
  dlopen      1,000,099 calls lost RTLD_DEEPBIND
)");
}

// Each {name} in the words of a figure is one of its section.
template <typename Table>
void expect_names_are_known(const Table& table, std::string words) {
  for (size_t begin; (begin = words.find('{')) != std::string::npos;) {
    const size_t end = words.find('}', begin);
    ASSERT_NE(end, std::string::npos) << words;
    const std::string name = words.substr(begin + 1, end - begin - 1);
    bool known = name.empty();
    for (const auto& each : table)
      known = known || name == each.name;
    EXPECT_TRUE(known) << name;
    words.erase(0, end + 1);
  }
}

TEST(StatisticsOutput, words_name_figures_of_their_section) {
#define SLUICE_FIGURE_ARENA(name, source, unit, words, ...) expect_names_are_known(stats::arena_figures, words);
#define SLUICE_FIGURE_THREADS(name, source, unit, words, ...) expect_names_are_known(stats::thread_figures, words);
#define SLUICE_FIGURE_OS(name, source, unit, words, ...) expect_names_are_known(stats::os_figures, words);
#define SLUICE_FIGURE_FOREIGN(name, source, unit, words, ...) expect_names_are_known(stats::foreign_figures, words);
#include "os/statistics.def"
}

}  // namespace
