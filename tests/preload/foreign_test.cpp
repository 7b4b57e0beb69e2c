// free, realloc and malloc_usable_size of addresses that no malloc of ours gave out: nothing is dereferenced,
// nothing crashes. Open it when a program with an allocator of its own dies in free.
//
// The other direction, a block of ours that ends in the free of libc (a statically linked libc, RTLD_DEEPBIND where
// SLUICE_DEEPBIND=1 keeps it), is out of an interposer's reach: our code is not on that path.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>

#include <string>
#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

alignas(64) char static_bytes[256];
const char constant_bytes[] = "constant bytes that nobody may write to";

struct Addresses {
  alignas(64) char stack_bytes[256] = {};
  std::vector<void*> all;

  Addresses() {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    char* const mapped =
        static_cast<char*>(mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char* const forbidden = static_cast<char*>(mmap(nullptr, 4 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char* const gone = static_cast<char*>(mmap(nullptr, 4 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    munmap(gone, 4 * page);
    for (char* const base : {stack_bytes, static_bytes, mapped, forbidden, gone, const_cast<char*>(constant_bytes)}) {
      all.insert(all.end(), {base, base + 16, base + 64});
    }
    for (const uintptr_t address :
         {uintptr_t{1}, uintptr_t{8}, uintptr_t{16}, uintptr_t{0x1000}, uintptr_t{0x10000}, uintptr_t{0xdeadbeef0},
          uintptr_t{0x7fffffffe000}, uintptr_t{0x7ffffffff000}, uintptr_t{0x800000000000},
          uintptr_t{0x8000000000000000}, uintptr_t{0xdeadbeefdeadbee0}, uintptr_t{0xffff800000000000},
          uintptr_t{0xfffffffffffff000}, uintptr_t{0xfffffffffffffff0}, UINTPTR_MAX}) {
      all.push_back(reinterpret_cast<void*>(address));
    }
    // Address space beside a block of ours in which the heap has nothing yet.
    char* const block = static_cast<char*>(malloc(100));
    for (int shift = 33; shift < 47; ++shift) {
      all.push_back(reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(block) + (uintptr_t{1} << shift)));
      all.push_back(reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(block) - (uintptr_t{1} << shift)));
    }
    free(block);
  }
};

void expect_heap_in_order() {
  std::vector<void*> blocks;
  for (size_t i = 0; i < 3000; ++i) {
    blocks.push_back(malloc(i));
    fill(blocks.back(), i, i);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_TRUE(holds(blocks[i], i, i));
    free(blocks[i]);
  }
}

TEST(ForeignPointer, IsNotFreed) {
  Addresses addresses;
  for (void* const address : addresses.all) {
    errno = 55;
    free(hide(address));
    ASSERT_EQ(errno, 55) << address;
  }
  expect_heap_in_order();
}

TEST(ForeignPointer, IsNotDeleted) {
  Addresses addresses;
  for (void* const address : addresses.all) {
    ::operator delete(hide(address));
    ::operator delete[](hide(address), size_t{16});
  }
  expect_heap_in_order();
}

TEST(ForeignPointer, HasNoUsableSize) {
  Addresses addresses;
  for (void* const address : addresses.all)
    EXPECT_EQ(malloc_usable_size(hide(address)), 0u) << address;
}

TEST(ForeignPointer, IsNotReallocated) {
  Addresses addresses;
  for (void* const address : addresses.all) {
    for (const size_t size : {size_t{0}, size_t{10}, size_t{100000}}) {
      void* const result = realloc(hide(address), hide(size));
      EXPECT_NE(result, address) << address;
      free(result);
    }
  }
  expect_heap_in_order();
}

TEST(ForeignPointer, OfALibraryWithItsOwnBindingIsTakenWithoutHarm) {
  void* const library = dlopen(PRELOAD_TEST_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  ASSERT_NE(library, nullptr) << dlerror();
  auto* const allocate = reinterpret_cast<void* (*)(size_t)>(dlsym(library, "library_allocate"));
  auto* const release = reinterpret_cast<void (*)(void*)>(dlsym(library, "library_release"));
  ASSERT_TRUE(allocate != nullptr && release != nullptr);
  for (const size_t size : {size_t{1}, size_t{24}, size_t{500}, size_t{5000}, size_t{1000000}}) {
    for (int i = 0; i < 200; ++i) {
      void* const block = allocate(size);
      ASSERT_NE(block, nullptr);
      memset(block, 1, size);
      free(hide(block));
      release(allocate(size));
    }
    void* const block = allocate(size);
    fill(block, size, size);
    void* const moved = realloc(hide(block), size + 100);
    if (moved != nullptr) {
      EXPECT_TRUE(holds(moved, size, size)) << "realloc of a block of libc lost its contents";
      free(moved);
    }
  }
  expect_heap_in_order();
  dlclose(library);
}

}  // namespace
