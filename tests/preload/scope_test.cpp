// What a scope does to the calls of a program: which blocks it places in the stack arena, and that the whole malloc
// family, operator new and what stands on them keep their contract there. Open it when a block that was allocated in a
// scope behaves otherwise than one of the pools.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "arena_subject.hpp"

// glibc 2.36 does not have these; they are called where the preload provides them.
extern "C" [[gnu::weak]] void free_sized(void*, size_t);
extern "C" [[gnu::weak]] void free_aligned_sized(void*, size_t, size_t);

namespace {

using namespace subject;

constexpr size_t most_bytes = 16 * KiB;     // of a block that a scope places
constexpr size_t most_alignment = 4 * KiB;  // of the same

TEST(Scope, PlacesOnlyWhileItIsOpen) {
  void* const before = malloc(40);
  void* inside = nullptr;
  {
    const sluice::scope scope;
    EXPECT_TRUE(scope.in_effect());
    inside = malloc(40);
  }
  void* const after = malloc(40);
  EXPECT_FALSE(is_in_arena(before));
  EXPECT_TRUE(is_in_arena(inside));
  EXPECT_FALSE(is_in_arena(after));
  for (void* block : {before, inside, after})
    free(block);
}

TEST(Scope, OfOneThreadDoesNotPlaceForAnother) {
  const sluice::scope scope;
  on_another_thread([] {
    void* const block = malloc(40);
    EXPECT_FALSE(is_in_arena(block));
    free(block);
  });
}

TEST(Scope, PlacesUpTo16KiB) {
  const sluice::scope scope;
  for (size_t size = most_bytes - 64; size <= most_bytes + 64; ++size) {
    void* const block = malloc(size);
    ASSERT_NE(block, nullptr);
    ASSERT_EQ(is_in_arena(block), size <= most_bytes) << size;
    ASSERT_GE(malloc_usable_size(block), size);
    memset(block, 0xff, malloc_usable_size(block));
    free(block);
  }
}

TEST(Scope, EverySizeIsWholeAndApart) {
  struct Block {
    void* address;
    size_t usable;
  };
  std::vector<Block> blocks;
  blocks.reserve(4000);
  {
    const sluice::scope scope;
    for (size_t size = 0; size < 17000; size += size < 600 ? 1 : 97) {
      void* const block = malloc(size);
      ASSERT_NE(block, nullptr);
      ASSERT_TRUE(is_aligned(block, 16));
      blocks.push_back({block, malloc_usable_size(block)});
      ASSERT_GE(blocks.back().usable, size);
      fill(block, blocks.back().usable, size);
    }
  }
  size_t size = 0;
  for (const Block& each : blocks) {
    ASSERT_EQ(malloc_usable_size(each.address), each.usable);
    ASSERT_TRUE(holds(each.address, each.usable, size)) << size;
    size += size < 600 ? 1 : 97;
  }
  for (const Block& each : blocks)
    free(each.address);
}

TEST(Scope, AlignmentsAreKeptAndPlacedUpTo4KiB) {
  const sluice::scope scope;
  for (size_t alignment = 8; alignment <= 64 * KiB; alignment *= 2) {
    for (const size_t size : {size_t{1}, size_t{100}, size_t{5000}, most_bytes, most_bytes + 1}) {
      std::vector<std::pair<const char*, void*>> blocks;
      void* by_posix = nullptr;
      ASSERT_EQ(posix_memalign(&by_posix, alignment, size), 0);
      blocks.emplace_back("posix_memalign", by_posix);
      blocks.emplace_back("memalign", memalign(alignment, size));
      blocks.emplace_back("aligned_alloc", aligned_alloc(alignment, size / alignment * alignment + alignment));
      blocks.emplace_back("new", ::operator new (size, std::align_val_t{alignment}));
      for (const auto& [name, block] : blocks) {
        ASSERT_NE(block, nullptr) << name;
        ASSERT_TRUE(is_aligned(block, alignment)) << name;
        ASSERT_GE(malloc_usable_size(block), size) << name;
        memset(block, 0xff, malloc_usable_size(block));
      }
      EXPECT_EQ(is_in_arena(by_posix), alignment <= most_alignment && size <= most_bytes) << alignment << ' ' << size;
      ::operator delete (blocks[3].second, size, std::align_val_t{alignment});
      free_aligned_sized(blocks[2].second, alignment, size / alignment * alignment + alignment);
      free(blocks[1].second);
      free(blocks[0].second);
    }
  }
}

TEST(Scope, WrongAlignmentsAndHugeSizesFailAsOutside) {
  const sluice::scope scope;
  void* block = nullptr;
  EXPECT_EQ(posix_memalign(&block, hide(size_t{24}), 100), EINVAL);
  EXPECT_EQ(posix_memalign(&block, hide(size_t{4}), 100), EINVAL);
  for (const size_t size : {SIZE_MAX, SIZE_MAX - 8, SIZE_MAX - 64 * KiB, size_t{PTRDIFF_MAX}}) {
    errno = 0;
    EXPECT_EQ(malloc(hide(size)), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(calloc(hide(size / 2), 3), nullptr);
    EXPECT_THROW(::operator delete(::operator new(hide(size))), std::bad_alloc);
    void* const small = malloc(100);
    fill(small, 100, 1);
    EXPECT_EQ(realloc(small, hide(size)), nullptr);
    EXPECT_TRUE(holds(small, 100, 1));
    free(small);
  }
}

TEST(Scope, CallocIsZeroWhateverLayThereBefore) {
  Sequence random(3);
  const sluice::scope scope;
  std::vector<std::pair<void*, size_t>> blocks;
  for (int round = 0; round < 30000; ++round) {
    const unsigned what = static_cast<unsigned>(random.below(10));
    if (what < 6 && blocks.size() < 200) {
      const size_t size = random.below(8) == 0 ? random.below(most_bytes) : random.below(400);
      void* const block = what < 3 ? calloc(1, size) : malloc(size);
      if (what < 3) {
        ASSERT_TRUE(is_filled_with(block, size, 0)) << size;
      }
      memset(block, 0xff, malloc_usable_size(block));
      blocks.emplace_back(block, size);
    } else if (!blocks.empty()) {
      // Mostly the last one, so that the stack is popped and its memory used again.
      const size_t at = what < 9 ? blocks.size() - 1 : random.below(blocks.size());
      if (what == 6) {
        blocks[at].second = random.below(600);
        blocks[at].first = realloc(blocks[at].first, blocks[at].second);
        memset(blocks[at].first, 0xff, malloc_usable_size(blocks[at].first));
        if (blocks[at].second != 0) continue;
      }
      free(blocks[at].first);
      blocks.erase(blocks.begin() + static_cast<ptrdiff_t>(at));
    }
  }
  for (const auto& [block, size] : blocks)
    free(block);
}

TEST(Scope, ReallocKeepsTheBytesWhereverTheBlockLies) {
  for (const bool begins_inside : {false, true}) {
    for (const bool grows_inside : {false, true}) {
      for (size_t from = 1; from < 40000; from = from * 3 / 2 + 1) {
        for (size_t to = 1; to < 40000; to = to * 2 + 1) {
          sluice::scope outer(begins_inside ? sluice::routing::on : sluice::routing::off);
          void* const block = malloc(from);
          void* const above = malloc(24);  // the block is not always the last one
          if (from % 2 == 0) free(above);
          fill(block, from, from);
          const sluice::scope inner(grows_inside ? sluice::routing::on : sluice::routing::off);
          void* const moved = realloc(block, to);
          ASSERT_NE(moved, nullptr);
          ASSERT_GE(malloc_usable_size(moved), to);
          ASSERT_TRUE(holds(moved, std::min(from, to), from)) << from << " to " << to;
          memset(moved, 0xff, malloc_usable_size(moved));
          free(moved);
          if (from % 2 != 0) free(above);
        }
      }
    }
  }
}

TEST(Scope, TheLastBlockGrowsInPlace) {
  const sluice::scope scope;
  void* const string = malloc(10);
  for (size_t size = 11; size < 4000; ++size)
    ASSERT_EQ(realloc(string, size), string);
  free(string);
}

TEST(Scope, ReallocOfNothingAndToNothing) {
  const sluice::scope scope;
  void* const block = realloc(nullptr, 100);
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(is_in_arena(block));
  EXPECT_EQ(realloc(block, hide(size_t{0})), nullptr);
  void* const none = malloc(0);
  ASSERT_NE(none, nullptr);
  void* const other = malloc(0);
  EXPECT_NE(none, other);
  free(none);
  free(other);
  free(nullptr);
}

TEST(Scope, SizedAndAlignedDeletesEndWhatTheirNewsBegan) {
  const sluice::scope scope;
  for (const size_t size : {size_t{1}, size_t{24}, size_t{1000}, most_bytes, most_bytes + 1, size_t{200000}}) {
    ::operator delete(::operator new(size), size);
    ::operator delete[](::operator new[](size), size);
    ::operator delete(::operator new(size, std::nothrow), std::nothrow);
    ::operator delete[](::operator new[](size, std::nothrow), std::nothrow);
    constexpr auto alignment = std::align_val_t{256};
    ::operator delete(::operator new(size, alignment), size, alignment);
    ::operator delete[](::operator new[](size, alignment), size, alignment);
    ::operator delete(::operator new(size, alignment, std::nothrow), alignment, std::nothrow);
    ::operator delete[](::operator new[](size, alignment, std::nothrow), alignment);
    free_sized(malloc(size), size);
    free_sized(calloc(size, 1), size);
  }
  void* const block = ::operator new(50);
  EXPECT_TRUE(is_in_arena(block));
  ::operator delete(block, 50);
}

TEST(Scope, CLibraryFunctionsAllocateInIt) {
  const sluice::scope scope;
  char* const copy = strdup("a text that is copied");
  EXPECT_TRUE(is_in_arena(copy));
  EXPECT_STREQ(copy, "a text that is copied");
  char* const part = strndup(copy, 6);
  EXPECT_STREQ(part, "a text");
  char* line = nullptr;
  ASSERT_EQ(asprintf(&line, "%s and %d", part, 42), 13);
  EXPECT_STREQ(line, "a text and 42");
  char* const path = realpath("/", nullptr);
  EXPECT_STREQ(path, "/");
  FILE* const memory = tmpfile();
  ASSERT_NE(memory, nullptr);
  for (int i = 0; i < 1000; ++i)
    std::fprintf(memory, "line %d\n", i);
  std::rewind(memory);
  char* read = nullptr;
  size_t capacity = 0;
  int lines = 0;
  while (getline(&read, &capacity, memory) > 0)
    ++lines;
  EXPECT_EQ(lines, 1000);
  std::fclose(memory);
  EXPECT_EQ(system("true"), 0);
  for (char* each : {copy, part, line, path, read})
    free(each);
}

template <class Container, class Make>
void fill_and_check(Make make) {
  Container outlives;
  {
    const sluice::scope scope;
    Container inside;
    for (int i = 0; i < 3000; ++i)
      make(inside, i);
    outlives = std::move(inside);
  }
  Container expected;
  for (int i = 0; i < 3000; ++i)
    make(expected, i);
  EXPECT_EQ(outlives, expected);
  outlives.clear();
}

TEST(Scope, ContainersOutliveIt) {
  const auto text = [](int i) { return std::string(static_cast<size_t>(i % 90), static_cast<char>('a' + i % 26)); };
  fill_and_check<std::vector<std::string>>([&](auto& to, int i) { to.push_back(text(i)); });
  fill_and_check<std::deque<std::string>>([&](auto& to, int i) { to.push_front(text(i)); });
  fill_and_check<std::list<std::string>>([&](auto& to, int i) { to.push_back(text(i)); });
  fill_and_check<std::map<int, std::string>>([&](auto& to, int i) { to.emplace(i * 7919 % 3001, text(i)); });
  fill_and_check<std::unordered_map<std::string, int>>([&](auto& to, int i) { to.emplace(text(i), i); });
  fill_and_check<std::string>([&](auto& to, int i) { to += text(i); });
}

TEST(Scope, StreamsFunctionsAndSharedPointersWorkInIt) {
  std::function<std::string()> later;
  std::shared_ptr<std::vector<int>> shared;
  {
    const sluice::scope scope;
    std::ostringstream out;
    for (int i = 0; i < 2000; ++i)
      out << i << ' ';
    std::istringstream in(out.str());
    long sum = 0;
    for (int i; in >> i;)
      sum += i;
    EXPECT_EQ(sum, 1999000);
    std::ifstream file("/proc/self/cmdline");
    EXPECT_TRUE(file.good());
    const std::string command{std::istreambuf_iterator<char>(file), {}};
    EXPECT_FALSE(command.empty());
    later = [text = out.str()] { return text.substr(0, 6); };
    shared = std::make_shared<std::vector<int>>(1000, 7);
  }
  EXPECT_EQ(later(), "0 1 2 ");
  EXPECT_EQ(shared->at(999), 7);
}

TEST(Scope, NoRouteWithinOneThatRoutes) {
  const sluice::scope scope;
  void* outlives = nullptr;
  {
    const sluice::scope pools(sluice::routing::off);
    EXPECT_TRUE(pools.in_effect());
    outlives = malloc(40);
    const sluice::scope innermost;
    void* const temporary = malloc(40);
    EXPECT_TRUE(is_in_arena(temporary));
    free(temporary);
  }
  EXPECT_FALSE(is_in_arena(outlives));
  void* const again = malloc(40);
  EXPECT_TRUE(is_in_arena(again));
  free(outlives);
  free(again);
}

TEST(Scope, TrimAndIntrospectionDoNotDisturbIt) {
  const sluice::scope scope;
  std::vector<void*> blocks;
  for (size_t i = 0; i < 2000; ++i) {
    blocks.push_back(malloc(100));
    fill(blocks.back(), 100, i);
    if (i % 100 == 0) {
      malloc_trim(0);
      sluice_stats stats;
      ASSERT_EQ(sluice_stats_get(&stats, sizeof stats), 0);
      EXPECT_GT(stats.live_bytes, i * 100);
    }
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_TRUE(holds(blocks[i], 100, i));
    free(blocks[i]);
    if (i % 100 == 0) malloc_trim(0);
  }
}

TEST(Scope, ErrnoIsKept) {
  errno = 1234;
  sluice_scope scope;
  ASSERT_EQ(sluice_scope_enter(&scope, SLUICE_ROUTE), 0);
  for (int i = 0; i < 3000; ++i)
    free(malloc(100));
  std::vector<void*> blocks(3000);
  for (void*& block : blocks)
    block = malloc(100);
  for (void* block : blocks)
    free(block);
  sluice_scope_leave(&scope);
  sluice_scope_leave(&scope);
  EXPECT_EQ(errno, 1234);
}

}  // namespace
