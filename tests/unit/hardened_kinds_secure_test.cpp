// Each mistake of the table in lib/docs/memory-errors.md with each kind of block in libsluice-secure.so: small ones,
// those of slabs of several units, large and very large ones, aligned ones, and those that came from calloc or realloc.
// Each case is a process of its own. Open it when a kind of block slips through.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hardened_calls.hpp"
#include "heap/reuse.hpp"
#include "in_child.hpp"
#include "pages/fence.hpp"
#include "pages/free_spans.hpp"
#include "pages/mappings.hpp"

namespace {

using namespace sluice;
using test::change;
using test::is_accessible;
using test::mib;
using test::said;

char* chars(void* block) {
  return static_cast<char*>(block);
}

struct Kind {
  const char* name;
  size_t size;
  char* (*make)();
};

const Kind kinds[] = {
    {"small", 100, [] { return chars(test::allocate(100)); }},
    {"slab of several units", 20'000, [] { return chars(test::allocate(20'000)); }},
    {"large", 70'000, [] { return chars(test::allocate(70'000)); }},
    {"large, of whole pages", 256 * 1024, [] { return chars(test::allocate(256 * 1024)); }},
    {"large, of less than a canary to a page", 131'069, [] { return chars(test::allocate(131'069)); }},
    {"very large", 6 * mib + 10, [] { return chars(test::allocate(6 * mib + 10)); }},
    {"aligned small", 500, [] { return chars(hardened::allocate_aligned(256, 500)); }},
    {"aligned large", 300'000, [] { return chars(hardened::allocate_aligned(4096, 300'000)); }},
    {"far aligned", 300'000, [] { return chars(hardened::allocate_aligned(mib, 300'000)); }},
    {"far aligned small", 20, [] { return chars(hardened::allocate_aligned(mib, 20)); }},
    {"calloc small", 200, [] { return chars(hardened::allocate_zeroed(2, 100)); }},
    {"calloc large", 400'000, [] { return chars(hardened::allocate_zeroed(4, 100'000)); }},
    {"calloc large, of whole pages", 128 * 1024, [] { return chars(hardened::allocate_zeroed(32, 4096)); }},
    {"realloc small", 300, [] { return chars(hardened::reallocate(test::allocate(30), 300)); }},
    {"realloc large grown", 500'000, [] { return chars(hardened::reallocate(test::allocate(70'000), 500'000)); }},
    {"realloc large shrunk", 200'000, [] { return chars(hardened::reallocate(test::allocate(250'000), 200'000)); }},
    {"realloc very large", 9 * mib, [] { return chars(hardened::reallocate(test::allocate(3 * mib), 9 * mib)); }},
};

bool is_large(const Kind& kind) {
  const char* const block = kind.make();  // starts the heap, if need be
  return class_bytes()[unit_index_of(block)] == class_byte_large;
}

// Runs `act` with a block of each kind, which returns what is wrong, if anything.
template <typename Act>
void for_each_kind(Act act, bool zero_on_free = false) {
  for (const Kind& kind : kinds) {
    EXPECT_EQ(test::in_child([&]() -> std::string {
                options.abort_on_corruption = false;
                options.zero_on_free = zero_on_free;
                hardened::free(kind.make());
                (void)heap::trim(0);
                return act(kind);
              }),
              "")
        << kind.name;
  }
}

// What a thread's end and a trim do.
void look_at_freed() {
  hardened::check_waiting();
  (void)heap::trim(0);
}

std::string expect_said(const std::string& text, const char* what) {
  return text.find(what) != std::string::npos ? "" : "said '" + text + "'";
}

TEST(HardenedKinds, AnOverflowByOneByteIsFoundAtTheFreeOrStopped) {
  for_each_kind([](const Kind& kind) -> std::string {
    char* const block = kind.make();
    if (!change(block + kind.size)) return "";
    return expect_said(said([=] { hardened::free(block); }), "sluice: overflow: ");
  });
}

TEST(HardenedKinds, AnOverflowByAPageIsFoundAtTheFreeOrStopped) {
  for_each_kind([](const Kind& kind) -> std::string {
    char* const block = kind.make();
    for (size_t i = 0; i < os::page_size(); ++i)
      if (!change(block + kind.size + i)) return "";
    if (is_large(kind)) return "not stopped";
    return expect_said(said([=] { hardened::free(block); }), "sluice: overflow: ");
  });
}

// Wherever a write goes that leaves out the canary.
TEST(HardenedKinds, ALargeBlockIsFollowedByPagesThatCannotBeTouched) {
  for_each_kind([](const Kind& kind) -> std::string {
    const char* const block = kind.make();
    if (!is_large(kind)) return "";
    const size_t page = os::page_size();
    const Unit& span = *region::unit_at(unit_index_of(block));
    for (size_t at = (kind.size + page - 1) / page * page; at < span.units * unit_size; at += page)
      if (is_accessible(block + at)) return std::to_string(at) + " can be touched";
    return is_accessible(block + kind.size - 1) ? "" : "its last byte cannot be touched";
  });
}

TEST(HardenedKinds, AnUnderflowIsFoundAtTheBlockInFrontOrStopped) {
  for_each_kind([](const Kind& kind) -> std::string {
    std::vector<char*> blocks;
    for (int i = 0; i < 40; ++i)
      blocks.push_back(kind.make());
    std::sort(blocks.begin(), blocks.end());
    // What is free in front of a large block is nobody's.
    const size_t unit = unit_index_of(blocks[20]);
    if (is_large(kind) && class_bytes()[unit] == class_byte_large &&
        FreeSpans::is_free(region::unit_at(unit - 1)->use()))
      return kind.size <= mib && strncmp(kind.name, "far", 3) != 0 ? "free in front" : "";
    if (!change(blocks[20] - 1)) return "";
    return expect_said(said([&] {
                         for (char* block : blocks)
                           hardened::free(block);
                       }),
                       "sluice: overflow: ");
  });
}

TEST(HardenedKinds, TheFirst48BytesOfAFreedBlockReadAsZeroOrCannotBeRead) {
  for_each_kind([](const Kind& kind) -> std::string {
    char* const block = kind.make();
    memset(block, 's', kind.size);
    hardened::free(block);
    if (!is_accessible(block)) return "";
    for (size_t i = 0; i < std::min<size_t>(kind.size, 48); ++i)
      if (block[i] != 0) return "byte " + std::to_string(i);
    return is_large(kind) ? "can be read" : "";
  });
}

TEST(HardenedKinds, AWriteToAFreedBlockIsFoundWhenItsMemoryIsUsedAgainOrStopped) {
  for_each_kind([](const Kind& kind) -> std::string {
    for (const size_t offset : {size_t{0}, std::min<size_t>(20, kind.size - 1), kind.size / 2}) {
      char* const block = kind.make();
      hardened::free(block);
      if (offset >= 48 && !is_large(kind)) continue;  // all bytes only with SLUICE_ZERO_ON_FREE
      if (!change(block + offset)) continue;
      if (is_large(kind)) return "not stopped";
      const std::string wrong = expect_said(said(look_at_freed), "sluice: write to free memory: ");
      if (!wrong.empty()) return std::to_string(offset) + ": " + wrong;
    }
    return "";
  });
}

TEST(HardenedKinds, WithZeroOnFreeAWriteToAnyByteOfAFreedBlockIsFoundOrStopped) {
  for_each_kind(
      [](const Kind& kind) -> std::string {
        for (const size_t offset : {size_t{0}, kind.size / 2, kind.size - 1}) {
          char* const block = kind.make();
          hardened::free(block);
          if (!change(block + offset)) continue;
          const std::string wrong = expect_said(said(look_at_freed), "sluice: write to free memory: ");
          if (!wrong.empty()) return std::to_string(offset) + ": " + wrong;
        }
        return "";
      },
      true);
}

TEST(HardenedKinds, ADoubleFreeIsFound) {
  for_each_kind([](const Kind& kind) -> std::string {
    char* const block = kind.make();
    hardened::free(block);
    const std::string text = said([=] { hardened::free(block); });
    return expect_said(text, ("sluice: double free: 0x")) +
           (is_large(kind) ? expect_said(text, ("block of " + std::to_string(kind.size) + " bytes").c_str()) : "");
  });
}

TEST(HardenedKinds, AFreeOfAnAddressInsideABlockIsFound) {
  for_each_kind([](const Kind& kind) -> std::string {
    char* const block = kind.make();
    return expect_said(said([=] { hardened::free(block + 16); }), "sluice: invalid free: ");
  });
}

TEST(HardenedKinds, AReallocOfAFreedBlockIsFound) {
  for_each_kind([](const Kind& kind) -> std::string {
    char* const block = kind.make();
    hardened::free(block);
    return expect_said(said([=] { (void)hardened::reallocate(block, 10); }), "sluice: realloc of a freed block: ");
  });
}

// How many bytes of blocks of the kind are what the last users left, of those that one may see that looks at `most` of
// each.
size_t bytes_left_by_others(const Kind& kind, size_t most) {
  const size_t count = kind.size > mib ? 4 : 64;
  const auto fill = [&](char secret) {
    std::vector<char*> blocks;
    size_t seen = 0;
    for (size_t i = 0; i < count; ++i) {
      char* const block = blocks.emplace_back(kind.make());
      const auto left = [](char byte) { return byte != 0; };
      seen += static_cast<size_t>(std::count_if(block, block + std::min(most, kind.size), left));
      memset(block, secret, kind.size);
    }
    for (char* block : blocks)
      hardened::free(block);
    return seen;
  };
  size_t seen = 0;
  for (int round = 0; round < 3; ++round) {
    seen += fill('s');
    if (round == 1) (void)heap::trim(64 * mib);  // what comes from the region again is not clean either
  }
  return seen;
}

TEST(HardenedKinds, OfTheLastUserNothingIsLeftInTheFirst48Bytes) {
  for_each_kind([](const Kind& kind) -> std::string {
    const size_t seen = bytes_left_by_others(kind, 48);
    return seen == 0 ? "" : std::to_string(seen) + " bytes";
  });
}

TEST(HardenedKinds, WithZeroOnFreeNothingIsLeftOfTheLastUser) {
  for_each_kind(
      [](const Kind& kind) -> std::string {
        const size_t seen = bytes_left_by_others(kind, SIZE_MAX);
        return seen == 0 ? "" : std::to_string(seen) + " bytes";
      },
      true);
}

TEST(HardenedKinds, WithZeroOnFreeAFreedBlockReadsAsZeroOrCannotBeRead) {
  for_each_kind(
      [](const Kind& kind) -> std::string {
        for (const int64_t budget : {1'000, 0}) {
          hardened::call_budget.left = budget;
          hardened::call_budget.ms_per_call = 0;
          char* const block = kind.make();
          memset(block, 's', kind.size);
          hardened::free(block);
          if (!is_accessible(block)) continue;
          for (size_t i = 0; i < kind.size; ++i)
            if (block[i] != 0) return "byte " + std::to_string(i);
        }
        return "";
      },
      true);
}

// Blocks grow into what others had, and shrink.
TEST(HardenedKinds, WithZeroOnFreeWhatReallocAddsReadsAsZero) {
  EXPECT_EQ(
      test::in_child([]() -> std::string {
        options.zero_on_free = true;
        for (int round = 0; round < 3; ++round) {
          std::vector<char*> others;
          for (const size_t size : {70'000, 400'000, 900'000, 3'000'000, 30})
            memset(others.emplace_back(chars(test::allocate(size))), 'o', size);
          char* block = others.front();
          for (char* other : others)
            if (other != block) hardened::free(other);
          size_t had = 70'000;
          for (const size_t size : {70'001, 70'900, 100'000, 90'000, 130'000, 900'000, 80'000, 2'000'000, 5'000'000}) {
            block = chars(hardened::reallocate(block, size));
            for (size_t i = had; i < size; ++i)
              if (block[i] != 0) return std::to_string(i) + " of " + std::to_string(size);
            memset(block, 'g', size);
            had = size;
          }
          hardened::free(block);
        }
        return "";
      }),
      "");
}

// Pages that were moved stay where they are when their block is freed.
TEST(HardenedKinds, WhatWasMovedAndIsWatchedIsReportedOnlyForWhatWasWritten) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              options.abort_on_corruption = false;
              char* block = chars(test::allocate(3 * mib));
              std::vector<char*> behind;
              for (int i = 0; i < 8; ++i)
                behind.push_back(chars(test::allocate(2 * mib)));
              memset(block, 'm', 3 * mib);
              block = chars(hardened::reallocate(block, 9 * mib));
              if (!region::has_displaced(unit_index_of(block), 1)) return "not moved";
              block = chars(hardened::reallocate(block, 400'000));
              hardened::call_budget.left = 0;
              hardened::call_budget.ms_per_call = 0;
              hardened::free(block);
              if (!change(block + 100'000)) return "closed";
              return said(look_at_freed);
            }),
            "");
}

// A program that frees large blocks faster than the system can close them.
TEST(HardenedKinds, WhereClosingIsNotAffordableFreedLargeBlocksAreWatched) {
  for (const bool zero_on_free : {false, true}) {
    for (const Kind& kind : kinds) {
      EXPECT_EQ(test::in_child([&]() -> std::string {
                  options.abort_on_corruption = false;
                  options.zero_on_free = zero_on_free;
                  hardened::call_budget.left = 0;
                  hardened::call_budget.ms_per_call = 0;
                  if (!is_large(kind) || kind.size > mib) return "";
                  for (const size_t offset : {size_t{0}, std::min<size_t>(40, kind.size - 1), kind.size - 1}) {
                    char* const block = kind.make();
                    const size_t last = kind.size - 1;
                    if (offset == last && last > 48 && !zero_on_free) continue;
                    hardened::free(block);
                    if (!change(block + offset)) return "closed";
                    const std::string text = said(look_at_freed);
                    const std::string wrong = expect_said(text, " was written to while it was free, a large block of ");
                    if (!wrong.empty()) return std::to_string(offset) + ": " + wrong;
                    char* const next = kind.make();
                    if (next == block) return "used again";
                    memset(next, 'n', kind.size);
                    if (!said([=] { hardened::free(next); }).empty()) return "the next one is reported";
                  }
                  return "";
                }),
                "")
          << kind.name << zero_on_free;
    }
  }
}

}  // namespace
