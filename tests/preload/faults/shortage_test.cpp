// Memory that ends in the middle of a program: a limit on its address space that is lowered while it runs, and as many
// mappings as a process may have. Each entry point fails with ENOMEM or bad_alloc and keeps what it was given; threads,
// whose first call may find nothing, live on; and when the shortage is over all is served. Open it when a program fails
// to recover from running out of memory.
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sluice/scope.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

size_t mapped_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  unsigned long pages = 0;
  if (file == nullptr || std::fscanf(file, "%lu", &pages) != 1) pages = 0;
  if (file != nullptr) std::fclose(file);
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// What was wrong first. Google Test needs memory to say so: it is told when there is some.
std::atomic<const char*> first_wrong{nullptr};

void require(bool holds, const char* what) {
  const char* none = nullptr;
  if (!holds) first_wrong.compare_exchange_strong(none, what);
}

class Shortage : public testing::Test {
 protected:
  void SetUp() override { first_wrong = nullptr; }
  void TearDown() override { EXPECT_STREQ(first_wrong, nullptr); }
};

// Takes all that malloc still has, in blocks of every size, and gives it back; needs no memory of its own.
class Hoard {
 public:
  Hoard() {
    for (size_t size = 4 * MiB; size != 0; size -= std::max(size / 256 * 16, size_t{16}))
      take_all(size);
  }
  ~Hoard() {
    while (first_ != nullptr)
      release_one();
  }
  Hoard(const Hoard&) = delete;
  Hoard& operator=(const Hoard&) = delete;
  bool release_one() {
    if (first_ == nullptr) return false;
    free(std::exchange(first_, *static_cast<void**>(first_)));
    return true;
  }

 private:
  void take_all(size_t size) {
    while (void* const block = malloc(hide(size))) {
      *static_cast<void**>(block) = first_;
      first_ = block;
    }
  }
  void* first_ = nullptr;
};

// While one of these lives, the process gets no further address space.
class AddressSpaceEnds {
 public:
  AddressSpaceEnds() {
    getrlimit(RLIMIT_AS, &before_);
    rlimit now = before_;
    now.rlim_cur = mapped_bytes();
    setrlimit(RLIMIT_AS, &now);
  }
  ~AddressSpaceEnds() { setrlimit(RLIMIT_AS, &before_); }
  AddressSpaceEnds(const AddressSpaceEnds&) = delete;
  AddressSpaceEnds& operator=(const AddressSpaceEnds&) = delete;

 private:
  rlimit before_{};
};

// No memory at all.
struct NoMemory {
  AddressSpaceEnds limit;
  Hoard hoard;
};

void expect_plenty() {
  for (const size_t size : {size_t{1}, size_t{1000}, size_t{60000}, 3 * MiB, 100 * MiB}) {
    const std::unique_ptr<char[]> block(new (std::nothrow) char[hide(size)]);
    ASSERT_NE(block, nullptr) << size << " bytes when the shortage is over";
    block[size - 1] = 'x';
  }
}

constexpr size_t sizes[] = {16, 1000, 10000, 60000, 70000, 300000, 9 * MiB};

// The beginning of a block tells enough of a large one.
size_t payload(size_t size) {
  return std::min(size, 100 * KiB);
}

// A block of each size, aligned or not, is resized to each other.
void resize_each(size_t alignment) {
  for (const size_t from : sizes) {
    for (const size_t to : sizes) {
      void* block = nullptr;
      ASSERT_EQ(posix_memalign(&block, alignment, from), 0);
      fill(block, payload(from), from + to);
      const NoMemory shortage;
      errno = 0;
      void* const moved = realloc(block, to);
      const int error = errno;
      void* const kept = moved != nullptr ? moved : block;
      require(moved != nullptr || to > from, "a block cannot be made smaller");
      require(moved != nullptr || error == ENOMEM, "realloc: null without ENOMEM");
      require(holds(kept, payload(moved != nullptr ? std::min(from, to) : from), from + to), "realloc: contents lost");
      require(malloc_usable_size(kept) >= (moved != nullptr ? to : from), "realloc: usable size is too small");
      free(kept);
    }
  }
  expect_plenty();
}

TEST_F(Shortage, ReallocKeepsTheBlockAndNeverFailsToMakeItSmaller) {
  resize_each(16);
}
TEST_F(Shortage, ReallocOfAlignedBlocksToo) {
  resize_each(4096);
}
TEST_F(Shortage, ReallocInScopesToo) {
  const sluice::scope scope;
  resize_each(16);
}

TEST_F(Shortage, EveryEntryPointSaysSo) {
  const NoMemory shortage;
  for (const size_t size : sizes) {
    errno = 0;
    require(malloc(hide(size)) == nullptr && errno == ENOMEM, "malloc");
    errno = 0;
    require(calloc(hide(size), 1) == nullptr && errno == ENOMEM, "calloc");
    errno = 0;
    require(aligned_alloc(64, hide(size)) == nullptr && errno == ENOMEM, "aligned_alloc");
    errno = 0;
    require(realloc(nullptr, hide(size)) == nullptr && errno == ENOMEM, "realloc");
    require(operator new(hide(size), std::nothrow) == nullptr, "operator new");
    require(operator new (hide(size), std::align_val_t{128}, std::nothrow) == nullptr, "operator new, aligned");
    const sluice::scope scope;
    free(malloc(hide(size)));  // which may have an empty chunk
  }
}

TEST_F(Shortage, ThatIsOverLeavesNoTrace) {
  for (int i = 0; i < 20; ++i) {
    { const NoMemory shortage; }
    expect_plenty();
  }
}

Hoard* hoard = nullptr;
int handler_calls = 0;

TEST_F(Shortage, TheNewHandlerIsCalledUntilThereIsMemory) {
  const AddressSpaceEnds limit;
  Hoard all;
  hoard = &all;
  handler_calls = 0;
  const std::new_handler before = std::set_new_handler([] {
    ++handler_calls;
    if (!hoard->release_one()) throw std::bad_alloc();
  });
  char* const block = static_cast<char*>(operator new(hide(3 * MiB)));
  std::set_new_handler(before);
  block[3 * MiB - 1] = 'x';
  operator delete(block);
  EXPECT_GT(handler_calls, 10);
}

TEST_F(Shortage, TheNewHandlerMayGiveUp) {
  const NoMemory shortage;
  handler_calls = 0;
  const std::new_handler before = std::set_new_handler([] {
    if (++handler_calls == 3) throw std::bad_alloc();
  });
  EXPECT_THROW(hide(operator new(hide(MiB))), std::bad_alloc);
  handler_calls = 0;
  require(operator new(hide(MiB), std::nothrow) == nullptr, "a block out of nothing");
  std::set_new_handler(before);
  EXPECT_EQ(handler_calls, 3);
}

struct Counted {
  Counted() : text(new char[20000]) { ++alive; }
  ~Counted() { --alive; }
  std::unique_ptr<char[]> text;
  static inline long alive = 0;
};

TEST_F(Shortage, ObjectsOfAnArrayThatCannotBeMadeAreDestroyed) {
  const AddressSpaceEnds limit;
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(hide(new Counted[size_t{100000}]), std::bad_alloc);
    EXPECT_EQ(Counted::alive, 0);
  }
  const std::unique_ptr<Counted[]> few(new Counted[100]);
  EXPECT_EQ(Counted::alive, 100);
}

TEST_F(Shortage, ThreadsThatCannotBeStartedLeakNothing) {
  size_t before = 0;
  for (int i = 0; i < 1100; ++i) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * MiB);  // more than any stack that libc keeps
    pthread_t thread;
    const AddressSpaceEnds limit;
    EXPECT_EQ(pthread_create(
                  &thread, &attributes, [](void*) -> void* { return nullptr; }, nullptr),
              EAGAIN);
    pthread_attr_destroy(&attributes);
    if (i == 100) before = mapped_bytes();
    if (HasFailure()) return;
  }
  EXPECT_LE(mapped_bytes(), before);
  std::thread([] { expect_plenty(); }).join();
}

// The stacks are there, since libc keeps those of threads that have ended; memory for a cache is not.
TEST_F(Shortage, ThreadsWhoseFirstCallFindsNothingLiveOn) {
  std::vector<pthread_t> threads(8);
  pthread_attr_t small;  // libc keeps some 40 MiB of stacks
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 256 * KiB);
  const auto start_all = [&](void* (*body)(void*)) {
    for (pthread_t& thread : threads)
      require(pthread_create(&thread, &small, body, nullptr) == 0, "no thread, though stacks are kept");
    for (const pthread_t thread : threads)
      pthread_join(thread, nullptr);
  };
  start_all([](void*) -> void* {
    usleep(1000);  // so that all of them live at once
    return nullptr;
  });
  {
    const NoMemory shortage;
    start_all([](void*) -> void* {
      for (const size_t size : sizes) {
        errno = 0;
        void* const block = malloc(hide(size));
        require(block != nullptr || errno == ENOMEM, "null without ENOMEM on a new thread");
        free(block);
        free(calloc(1, hide(size)));
        const sluice::scope scope;
        free(malloc(hide(size)));
      }
      return nullptr;
    });
  }
  start_all([](void*) -> void* {
    expect_plenty();
    return nullptr;
  });
  pthread_attr_destroy(&small);
}

// As many mappings as the system allows: neighbouring pages with different rights.
class Crowd {
 public:
  explicit Crowd(size_t places_left) {
    pages_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (pages_ == MAP_FAILED) return;
    for (size_t at = 0; at < bytes_ && !full_; at += 2 * page_)
      full_ = mprotect(pages_ + at, page_, PROT_READ) != 0;
    for (size_t i = 0; full_ && i < places_left; i += 2)
      mprotect(pages_ + i * page_, page_, PROT_NONE);
  }
  ~Crowd() {
    if (pages_ != MAP_FAILED) munmap(pages_, bytes_);
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  bool is_full() const { return full_; }

 private:
  static constexpr size_t page_ = 64 * KiB;  // a multiple of every page size
  static constexpr size_t bytes_ = page_ * 300'000;
  char* pages_ = nullptr;
  bool full_ = false;
};

void use_all_sizes(bool may_fail) {
  std::vector<std::pair<void*, size_t>> blocks;
  blocks.reserve(400);
  for (size_t i = 0; i < 200; ++i) {
    const size_t size = sizes[i % std::size(sizes)];
    errno = 0;
    void* block = i % 5 == 0 ? calloc(1, size) : i % 7 == 0 ? memalign(4096, size) : malloc(hide(size));
    require(block != nullptr || (may_fail && errno == ENOMEM), "null without ENOMEM, or though there is memory");
    if (block == nullptr) continue;
    fill(block, payload(size), i);
    const size_t next = sizes[(i * 5 + 3) % std::size(sizes)];
    void* const moved = realloc(block, next);
    require(moved != nullptr || (may_fail && next > size), "realloc failed");
    const size_t kept = moved != nullptr ? std::min(size, next) : size;
    block = moved != nullptr ? moved : block;
    require(holds(block, payload(kept), i), "realloc: contents lost");
    blocks.emplace_back(block, kept);
    if (i % 3 == 0) {
      free(blocks[i / 3 % blocks.size()].first);
      blocks[i / 3 % blocks.size()].first = nullptr;
    }
    if (i % 50 == 0) malloc_trim(0);
  }
  for (const auto& [block, size] : blocks)
    free(block);
}

TEST_F(Shortage, OfMappingsIsSurvived) {
  for (const size_t places : {0, 1, 3, 8, 40}) {
    {
      const Crowd crowd(places);
      if (!crowd.is_full()) GTEST_SKIP() << "this process may have more mappings than the test makes";
      use_all_sizes(true);
      for (int i = 0; i < 3; ++i) {
        pthread_t thread;
        const auto body = [](void*) -> void* {
          use_all_sizes(true);
          return nullptr;
        };
        if (pthread_create(&thread, nullptr, body, nullptr) == 0) pthread_join(thread, nullptr);
      }
    }
    use_all_sizes(false);
    std::thread([] { use_all_sizes(false); }).join();
  }
}

}  // namespace
