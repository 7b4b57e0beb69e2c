// The names that a program reaches only through dlsym, or that its libc may not declare: free_sized,
// free_aligned_sized, cfree, __libc_*, __posix_memalign. Open it when a program resolves an allocator by name
// and gets two heaps.
#include <gtest/gtest.h>
#include <malloc.h>

#include "subject.hpp"

namespace {

using namespace subject;

template <class Function>
Function* resolve(const char* name) {
  void* const symbol = dlsym(RTLD_DEFAULT, name);
  if (symbol == nullptr) {
    ADD_FAILURE() << name << " is not exported";
  } else if (!any_allocator_will_do()) {
    EXPECT_TRUE(is_served(name)) << name << " does not come from libsluice.so";
  }
  return reinterpret_cast<Function*>(symbol);
}

void expect_usable(void* block, size_t size) {
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(is_aligned(block, 16));
  EXPECT_GE(malloc_usable_size(block), size);
  memset(hide(block), 0x33, size);
}

TEST(EveryFamilyMember, IsServedBySluice) {
  for (const char* const name : {"malloc",          "calloc",
                                 "realloc",         "free",
                                 "reallocarray",    "memalign",
                                 "aligned_alloc",   "posix_memalign",
                                 "valloc",          "pvalloc",
                                 "cfree",           "malloc_usable_size",
                                 "free_sized",      "free_aligned_sized",
                                 "malloc_trim",     "mallopt",
                                 "mallinfo",        "mallinfo2",
                                 "malloc_stats",    "malloc_info",
                                 "__libc_malloc",   "__libc_calloc",
                                 "__libc_realloc",  "__libc_free",
                                 "__libc_memalign", "__libc_valloc",
                                 "__libc_pvalloc",  "__posix_memalign"}) {
    EXPECT_TRUE(is_served(name)) << name;
  }
}

TEST(FreeSized, FreesWithTheSizeThatWasAsked) {
  auto* const free_sized = resolve<void(void*, size_t)>("free_sized");
  ASSERT_NE(free_sized, nullptr);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{100}, size_t{5000}, size_t{300000}}) {
    for (int i = 0; i < 1000; ++i) {
      void* const block = malloc(size);
      expect_usable(block, size);
      errno = 77;
      free_sized(block, size);
      ASSERT_EQ(errno, 77);
    }
  }
  free_sized(nullptr, 10);
}

TEST(FreeAlignedSized, FreesWithTheAlignmentThatWasAsked) {
  auto* const free_aligned_sized = resolve<void(void*, size_t, size_t)>("free_aligned_sized");
  ASSERT_NE(free_aligned_sized, nullptr);
  for (const size_t alignment : {size_t{16}, size_t{64}, size_t{4096}, size_t{1} << 17}) {
    for (int i = 0; i < 200; ++i) {
      void* const block = aligned_alloc(alignment, 3 * alignment);
      expect_usable(block, 3 * alignment);
      free_aligned_sized(block, alignment, 3 * alignment);
    }
  }
  free_aligned_sized(nullptr, 16, 16);
}

TEST(Cfree, IsFree) {
  auto* const cfree = resolve<void(void*)>("cfree");
  ASSERT_NE(cfree, nullptr);
  for (int i = 0; i < 1000; ++i) {
    void* const block = calloc(3, 50);
    expect_usable(block, 150);
    cfree(block);
  }
  cfree(nullptr);
}

TEST(LibcNames, ShareTheHeapOfTheOthers) {
  auto* const libc_malloc = resolve<void*(size_t)>("__libc_malloc");
  auto* const libc_calloc = resolve<void*(size_t, size_t)>("__libc_calloc");
  auto* const libc_realloc = resolve<void*(void*, size_t)>("__libc_realloc");
  auto* const libc_free = resolve<void(void*)>("__libc_free");
  auto* const libc_memalign = resolve<void*(size_t, size_t)>("__libc_memalign");
  auto* const libc_valloc = resolve<void*(size_t)>("__libc_valloc");
  auto* const libc_pvalloc = resolve<void*(size_t)>("__libc_pvalloc");
  auto* const posix = resolve<int(void**, size_t, size_t)>("__posix_memalign");
  if (HasFailure()) return;
  for (int i = 0; i < 200; ++i) {
    void* block = libc_malloc(100);
    expect_usable(block, 100);
    block = realloc(block, 9000);
    expect_usable(block, 9000);
    libc_free(block);
    block = libc_calloc(10, 30);
    EXPECT_TRUE(is_filled_with(block, 300, 0));
    block = libc_realloc(block, 200);
    expect_usable(block, 200);
    free(block);
    block = malloc(70000);
    libc_free(block);
    block = libc_memalign(256, 10);
    EXPECT_TRUE(is_aligned(block, 256));
    free(block);
    block = libc_valloc(10);
    EXPECT_TRUE(is_aligned(block, static_cast<size_t>(sysconf(_SC_PAGESIZE))));
    free(block);
    block = libc_pvalloc(10);
    EXPECT_GE(malloc_usable_size(block), static_cast<size_t>(sysconf(_SC_PAGESIZE)));
    free(block);
    ASSERT_EQ(posix(&block, 512, 10), 0);
    EXPECT_TRUE(is_aligned(block, 512));
    free(block);
  }
}

}  // namespace
