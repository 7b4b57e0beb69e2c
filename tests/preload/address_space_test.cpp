// A program under `ulimit -v`: it starts, malloc fails with ENOMEM and never aborts, what was allocated
// stays, and after a free there is memory again. ctest runs it under 512 and 64 MiB. Open it when a program
// dies in a small container.
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "subject.hpp"

namespace {

using namespace subject;

struct Link {
  Link* next;
  size_t size;
};

// A chain of blocks of known payload, kept in the blocks themselves: it needs no memory of its own.
class Chain {
 public:
  ~Chain() { release(); }

  // Returns: how many blocks were added before malloc failed.
  size_t fill_up(size_t size) {
    size_t added = 0;
    while (true) {
      errno = 0;
      auto* const link = static_cast<Link*>(malloc(size));
      if (link == nullptr) break;
      link->next = first_;
      link->size = size;
      fill(link + 1, payload(size), size);
      first_ = link;
      ++added;
    }
    error_ = errno;
    return added;
  }
  bool intact() const {
    for (const Link* link = first_; link != nullptr; link = link->next) {
      if (!holds(link + 1, payload(link->size), link->size)) return false;
    }
    return true;
  }
  void release() {
    while (first_ != nullptr)
      free(std::exchange(first_, first_->next));
  }
  int error() const { return error_; }

 private:
  // The first and the last bytes tell enough of a large block.
  static size_t payload(size_t size) { return std::min(size - sizeof(Link), size_t{600}); }
  Link* first_ = nullptr;
  int error_ = 0;
};

size_t limit() {
  rlimit now = {};
  getrlimit(RLIMIT_AS, &now);
  return now.rlim_cur;
}

TEST(AddressSpaceLimit, IsSet) {
  ASSERT_LE(limit(), 512 * MiB);
}

// The stacks of threads need it, and libraries that are loaded. Each in a child: what is missed stays for a while.
TEST(AddressSpaceLimit, IsThereForOthersWhenTheHeapIsFreed) {
  if (is_secure_build() && limit() < 512 * MiB) GTEST_SKIP() << "freed blocks wait, too many for a small limit";
  const size_t wanted = limit() / (is_secure_build() || limit() < 512 * MiB ? 4 : 2);  // three eighths may be retained
  for (const size_t size : {size_t{1000}, size_t{20000}, size_t{100000}, size_t{1000000}}) {
    const pid_t child = fork();
    if (child == 0) {
      {
        Chain chain;
        chain.fill_up(size);
      }
      void* const others = mmap(nullptr, wanted, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      _exit(others != MAP_FAILED ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << size;
  }
}

// The first of these tests, since address space that the heap has once used need not come back to thread
// stacks.
TEST(AddressSpaceLimit, LetsThreadsStartAndUseUpWhatIsThere) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * KiB);
  for (int i = 0; i < 3; ++i) {
    pthread_t thread;
    const auto body = [](void*) -> void* {
      Chain chain;
      chain.fill_up(3000);
      return reinterpret_cast<void*>(chain.intact() && chain.error() == ENOMEM ? 1ul : 0ul);
    };
    ASSERT_EQ(pthread_create(&thread, &attributes, body, nullptr), 0);
    void* good = nullptr;
    ASSERT_EQ(pthread_join(thread, &good), 0);
    ASSERT_NE(good, nullptr);
  }
  pthread_attr_destroy(&attributes);
}

TEST(AddressSpaceLimit, IsUsedWellForEverySize) {
  for (const size_t size : {size_t{64}, size_t{1000}, size_t{20000}, size_t{100000}, size_t{1000000}}) {
    Chain chain;
    const size_t added = chain.fill_up(size);
    EXPECT_EQ(chain.error(), ENOMEM) << size;
    EXPECT_TRUE(chain.intact()) << size;
    EXPECT_GE(added * size, limit() / 5) << size << ": too little of the address space could be used";
  }
}

TEST(AddressSpaceLimit, FailureLeavesEveryEntryPointAlive) {
  Chain chain;
  chain.fill_up(1000000);
  chain.fill_up(10000);
  chain.fill_up(100);
  chain.fill_up(sizeof(Link) + 1);
  const size_t big = limit();
  for (int i = 0; i < 1000; ++i) {
    errno = 0;
    EXPECT_EQ(malloc(hide(big)), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(calloc(hide(big / 2), 2), nullptr);
    EXPECT_EQ(memalign(4096, hide(big)), nullptr);
    void* block = nullptr;
    EXPECT_EQ(posix_memalign(&block, 64, hide(big)), ENOMEM);
    EXPECT_EQ(operator new(hide(big), std::nothrow), nullptr);
    if (HasFailure()) break;
  }
  free(hide(static_cast<void*>(nullptr)));
  EXPECT_TRUE(chain.intact());
  chain.release();
  EXPECT_GE(chain.fill_up(1000), limit() / 5 / 1000) << "memory that was freed cannot be had again";
  EXPECT_TRUE(chain.intact());
}

TEST(AddressSpaceLimit, FailingReallocKeepsTheBlock) {
  char* block = nullptr;
  size_t size = 0;
  while (true) {
    const size_t next = size == 0 ? MiB : size * 2;
    errno = 0;
    auto* const moved = static_cast<char*>(realloc(block, next));
    if (moved == nullptr) break;
    block = moved;
    ASSERT_TRUE(holds(block, size < 600 ? size : 600, 21));
    fill(block, 600, 21);
    size = next;
  }
  EXPECT_EQ(errno, ENOMEM);
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(holds(block, 600, 21));
  free(block);
}

void* reserve = nullptr;

TEST(AddressSpaceLimit, NewHandlerThatFreesIsCalledAndNewSucceeds) {
  reserve = malloc(limit() / 4);
  ASSERT_NE(reserve, nullptr);
  Chain chain;
  chain.fill_up(100000);
  const std::new_handler previous = std::set_new_handler([] {
    free(reserve);
    reserve = nullptr;
    std::set_new_handler(nullptr);
  });
  void* const block = operator new(hide(limit() / 8), std::nothrow);
  std::set_new_handler(previous);
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(reserve, nullptr);
  operator delete(block);
  EXPECT_TRUE(chain.intact());
}

TEST(AddressSpaceLimit, ThrowsBadAllocThatCanBeCaught) {
  Chain chain;
  chain.fill_up(50000);
  for (int i = 0; i < 100; ++i)
    EXPECT_THROW(hide(operator new(hide(limit()))), std::bad_alloc);
  EXPECT_TRUE(chain.intact());
}

}  // namespace
