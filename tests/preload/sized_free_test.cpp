// Sizes and alignments that a program gets wrong when it frees: a base class without a virtual destructor, an array
// deleted as one object, an aligned object deleted as a plain one, malloc ended by delete. The block is what its
// address says. Open it when a program's heap breaks after such a free.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sluice/sluice.h>

#include <new>
#include <thread>
#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

constexpr size_t lies[] = {0, 1, 16, 300, 4096, 70000, size_t{1} << 40, SIZE_MAX};

using End = void (*)(void* block, size_t size, size_t alignment);

template <class Function>
Function* resolve(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

struct Row {
  const char* name;
  End end;
};

const Row ends[] = {
    {"free", [](void* block, size_t, size_t) { free(block); }},
    {"free_sized", [](void* block, size_t size, size_t) { resolve<void(void*, size_t)>("free_sized")(block, size); }},
    {"free_aligned_sized",
     [](void* block, size_t size, size_t alignment) {
       resolve<void(void*, size_t, size_t)>("free_aligned_sized")(block, alignment, size);
     }},
    {"cfree", [](void* block, size_t, size_t) { resolve<void(void*)>("cfree")(block); }},
    {"delete", [](void* block, size_t, size_t) { ::operator delete(block); }},
    {"delete[]", [](void* block, size_t, size_t) { ::operator delete[](block); }},
    {"delete nothrow", [](void* block, size_t, size_t) { ::operator delete(block, std::nothrow); }},
    {"delete[] nothrow", [](void* block, size_t, size_t) { ::operator delete[](block, std::nothrow); }},
    {"sized delete", [](void* block, size_t size, size_t) { ::operator delete(block, size); }},
    {"sized delete[]", [](void* block, size_t size, size_t) { ::operator delete[](block, size); }},
    {"aligned delete",
     [](void* block, size_t, size_t alignment) { ::operator delete (block, std::align_val_t{alignment}); }},
    {"aligned delete[]",
     [](void* block, size_t, size_t alignment) { ::operator delete[](block, std::align_val_t{alignment}); }},
    {"sized aligned delete",
     [](void* block, size_t size, size_t alignment) { ::operator delete (block, size, std::align_val_t{alignment}); }},
    {"sized aligned delete[]",
     [](void* block, size_t size, size_t alignment) { ::operator delete[](block, size, std::align_val_t{alignment}); }},
    {"aligned delete nothrow",
     [](void* block, size_t, size_t alignment) {
       ::operator delete (block, std::align_val_t{alignment}, std::nothrow);
     }},
    {"aligned delete[] nothrow",
     [](void* block, size_t, size_t alignment) {
       ::operator delete[](block, std::align_val_t{alignment}, std::nothrow);
     }},
};

void* (*const begins[])(size_t) = {
    [](size_t size) { return malloc(size); },
    [](size_t size) { return calloc(size, 1); },
    [](size_t size) { return memalign(256, size); },
    [](size_t size) { return ::operator new(size); },
    [](size_t size) { return ::operator new[](size); },
    [](size_t size) { return ::operator new (size, std::align_val_t{64}); },
    [](size_t size) { return ::operator new[](size, std::align_val_t{4096}); },
};

// Blocks of a known payload beside those that are freed wrongly; each keeps its own.
class Witnesses {
 public:
  ~Witnesses() {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      EXPECT_TRUE(holds(blocks_[i], sizes_[i], i));
      free(blocks_[i]);
    }
  }
  void add(size_t size) {
    blocks_.push_back(malloc(size));
    sizes_.push_back(size);
    fill(blocks_.back(), size, blocks_.size() - 1);
  }

 private:
  std::vector<void*> blocks_;
  std::vector<size_t> sizes_;
};

void free_with_every_lie() {
  Witnesses witnesses;
  for (const size_t size : {size_t{24}, size_t{200}, size_t{9000}, size_t{100000}}) {
    for (const Row& row : ends) {
      for (auto* const begin : begins) {
        for (const size_t lie : lies) {
          void* const block = begin(size);
          ASSERT_NE(block, nullptr);
          witnesses.add(24 + lie % 1000);
          memset(hide(block), 0x55, size);
          errno = 33;
          row.end(hide(block), hide(lie), size_t{1} << lie % 13);
          ASSERT_EQ(errno, 33) << row.name;
        }
      }
    }
  }
}

TEST(SizedFree, LiesDoNoHarm) {
  free_with_every_lie();
}

TEST(SizedFree, LiesDoNoHarmWithinAScope) {
  sluice_scope scope;
  if (sluice_scope_enter != nullptr) (void)sluice_scope_enter(&scope, SLUICE_ROUTE);
  free_with_every_lie();
  if (sluice_scope_leave != nullptr) sluice_scope_leave(&scope);
}

TEST(SizedFree, LiesOfAnotherThreadDoNoHarm) {
  Witnesses witnesses;
  std::vector<void*> blocks;
  for (size_t i = 0; i < 5000; ++i) {
    blocks.push_back(begins[i % 7](i % 3000 + 1));
    witnesses.add(i % 500 + 1);
  }
  std::thread([&blocks] {
    for (size_t i = 0; i < blocks.size(); ++i)
      ends[i % 16].end(blocks[i], lies[i % 8], size_t{1} << i % 13);
  }).join();
}

TEST(SizedFree, OfNothingIsNothing) {
  for (const Row& row : ends)
    row.end(hide(static_cast<void*>(nullptr)), 100, 64);
}

}  // namespace
