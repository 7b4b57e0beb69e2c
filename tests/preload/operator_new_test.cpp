// Every form of operator new and operator delete: which are there, what they align to, and what happens when
// memory runs out. Open it when a C++ program fails where a C program does not.
#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

struct Form {
  const char* name;
  void* (*create)(size_t size);
  void (*destroy)(void* block, size_t size);
  size_t alignment;
  bool nothrow;
};

constexpr std::align_val_t wide{256};

const Form forms[] = {
    {"new, delete", [](size_t n) { return ::operator new(n); }, [](void* p, size_t) { ::operator delete(p); }, 16,
     false},
    {"new, sized delete", [](size_t n) { return ::operator new(n); },
     [](void* p, size_t n) { ::operator delete(p, n); }, 16, false},
    {"nothrow new, nothrow delete", [](size_t n) { return ::operator new(n, std::nothrow); },
     [](void* p, size_t) { ::operator delete(p, std::nothrow); }, 16, true},
    {"aligned new, aligned delete", [](size_t n) { return ::operator new(n, wide); },
     [](void* p, size_t) { ::operator delete(p, wide); }, 256, false},
    {"aligned new, sized aligned delete", [](size_t n) { return ::operator new(n, wide); },
     [](void* p, size_t n) { ::operator delete(p, n, wide); }, 256, false},
    {"aligned nothrow new, aligned nothrow delete", [](size_t n) { return ::operator new(n, wide, std::nothrow); },
     [](void* p, size_t) { ::operator delete(p, wide, std::nothrow); }, 256, true},
    {"new[], delete[]", [](size_t n) { return ::operator new[](n); }, [](void* p, size_t) { ::operator delete[](p); },
     16, false},
    {"new[], sized delete[]", [](size_t n) { return ::operator new[](n); },
     [](void* p, size_t n) { ::operator delete[](p, n); }, 16, false},
    {"nothrow new[], nothrow delete[]", [](size_t n) { return ::operator new[](n, std::nothrow); },
     [](void* p, size_t) { ::operator delete[](p, std::nothrow); }, 16, true},
    {"aligned new[], aligned delete[]", [](size_t n) { return ::operator new[](n, wide); },
     [](void* p, size_t) { ::operator delete[](p, wide); }, 256, false},
    {"aligned new[], sized aligned delete[]", [](size_t n) { return ::operator new[](n, wide); },
     [](void* p, size_t n) { ::operator delete[](p, n, wide); }, 256, false},
    {"aligned nothrow new[], aligned nothrow delete[]",
     [](size_t n) { return ::operator new[](n, wide, std::nothrow); },
     [](void* p, size_t) { ::operator delete[](p, wide, std::nothrow); }, 256, true},
};

const size_t impossible = static_cast<size_t>(PTRDIFF_MAX) - 4096;

class NewHandler {
 public:
  explicit NewHandler(std::new_handler handler) : previous_(std::set_new_handler(handler)) {}
  ~NewHandler() { std::set_new_handler(previous_); }
  NewHandler(const NewHandler&) = delete;
  NewHandler& operator=(const NewHandler&) = delete;

 private:
  std::new_handler previous_;
};

int handler_calls = 0;

TEST(OperatorNew, EveryFormIsServedBySluice) {
  for (const char* const name : {"_Znwm",
                                 "_Znam",
                                 "_ZnwmRKSt9nothrow_t",
                                 "_ZnamRKSt9nothrow_t",
                                 "_ZnwmSt11align_val_t",
                                 "_ZnamSt11align_val_t",
                                 "_ZnwmSt11align_val_tRKSt9nothrow_t",
                                 "_ZnamSt11align_val_tRKSt9nothrow_t",
                                 "_ZdlPv",
                                 "_ZdaPv",
                                 "_ZdlPvm",
                                 "_ZdaPvm",
                                 "_ZdlPvRKSt9nothrow_t",
                                 "_ZdaPvRKSt9nothrow_t",
                                 "_ZdlPvSt11align_val_t",
                                 "_ZdaPvSt11align_val_t",
                                 "_ZdlPvmSt11align_val_t",
                                 "_ZdaPvmSt11align_val_t",
                                 "_ZdlPvSt11align_val_tRKSt9nothrow_t",
                                 "_ZdaPvSt11align_val_tRKSt9nothrow_t"}) {
    EXPECT_TRUE(is_served(name)) << name;
  }
}

TEST(OperatorNew, EveryFormGivesAnAlignedBlockThatItsDeleteTakesBack) {
  for (const Form& form : forms) {
    for (const size_t size :
         {size_t{0}, size_t{1}, size_t{40}, size_t{1000}, size_t{5000}, size_t{100000}, size_t{3000000}}) {
      for (int i = 0; i < 20; ++i) {
        void* const first = hide(form.create(size));
        void* const second = hide(form.create(size));
        ASSERT_TRUE(first != nullptr && second != nullptr) << form.name;
        ASSERT_NE(first, second) << form.name;
        ASSERT_TRUE(is_aligned(first, form.alignment)) << form.name << " " << size;
        memset(first, 1, malloc_usable_size(first));
        memset(second, 2, malloc_usable_size(second));
        ASSERT_TRUE(is_filled_with(first, size, 1)) << form.name;
        form.destroy(first, size);
        form.destroy(second, size);
      }
    }
    form.destroy(hide(static_cast<void*>(nullptr)), 0);
  }
}

TEST(OperatorNew, WithoutMemoryThrowsOrReturnsNull) {
  const NewHandler none(nullptr);
  for (const Form& form : forms) {
    for (const size_t size : {impossible, SIZE_MAX - 300, SIZE_MAX}) {
      if (form.nothrow) {
        EXPECT_EQ(hide(form.create(hide(size))), nullptr) << form.name;
      } else {
        EXPECT_THROW(hide(form.create(hide(size))), std::bad_alloc) << form.name;
      }
    }
  }
}

TEST(OperatorNew, CallsTheHandlerUntilItGivesUp) {
  for (const Form& form : forms) {
    handler_calls = 0;
    const NewHandler counting([] {
      if (++handler_calls == 3) std::set_new_handler(nullptr);
    });
    if (form.nothrow) {
      EXPECT_EQ(hide(form.create(hide(impossible))), nullptr) << form.name;
    } else {
      EXPECT_THROW(hide(form.create(hide(impossible))), std::bad_alloc) << form.name;
    }
    EXPECT_EQ(handler_calls, 3) << form.name;
  }
}

TEST(OperatorNew, LetsTheHandlersExceptionThroughOrTurnsItIntoNull) {
  for (const Form& form : forms) {
    handler_calls = 0;
    const NewHandler throwing([] {
      ++handler_calls;
      throw std::bad_alloc();
    });
    if (form.nothrow) {
      EXPECT_EQ(hide(form.create(hide(impossible))), nullptr) << form.name;
    } else {
      EXPECT_THROW(hide(form.create(hide(impossible))), std::bad_alloc) << form.name;
    }
    EXPECT_EQ(handler_calls, 1) << form.name;
  }
}

TEST(OperatorNew, AllocatesWhileAnExceptionPassesThrough) {
  for (int i = 0; i < 2000; ++i) {
    try {
      std::vector<std::string> words(20, std::string(100, 'x'));
      throw std::runtime_error(words[static_cast<size_t>(i) % 20] + std::to_string(i));
    } catch (const std::runtime_error& error) {
      ASSERT_EQ(std::string(error.what()).substr(100), std::to_string(i));
    }
  }
}

TEST(SizedDelete, BelievesTheAddressAndNotTheSize) {
  std::vector<void*> witnesses;
  for (const size_t size : {size_t{24}, size_t{200}, size_t{1000}, size_t{9000}, size_t{100000}}) {
    for (const size_t lie : {size_t{0}, size_t{1}, size_t{16}, size_t{300}, size_t{70000}, size_t{1} << 40, SIZE_MAX}) {
      for (int i = 0; i < 50; ++i) {
        void* const witness = malloc(size);
        fill(witness, size, witnesses.size());
        witnesses.push_back(witness);
        ::operator delete(hide(::operator new(size)), hide(lie));
        ::operator delete[](hide(::operator new[](size)), hide(lie));
        ::operator delete(hide(::operator new(size, wide)), hide(lie), wide);
      }
    }
  }
  size_t seed = 0;
  for (const size_t size : {size_t{24}, size_t{200}, size_t{1000}, size_t{9000}, size_t{100000}}) {
    for (int i = 0; i < 7 * 50; ++i, ++seed) {
      ASSERT_TRUE(holds(witnesses[seed], size, seed));
      free(witnesses[seed]);
    }
  }
}

TEST(Containers, WorkThroughEveryForm) {
  struct alignas(512) Wide {
    char bytes[600];
  };
  std::vector<std::unique_ptr<Wide>> wide_objects;
  for (int i = 0; i < 300; ++i) {
    wide_objects.push_back(std::make_unique<Wide>());
    ASSERT_TRUE(is_aligned(wide_objects.back().get(), 512));
  }
  std::vector<std::shared_ptr<std::string>> strings;
  for (int i = 0; i < 3000; ++i)
    strings.push_back(std::make_shared<std::string>(static_cast<size_t>(i), 'a'));
  for (size_t i = 0; i < strings.size(); ++i)
    ASSERT_EQ(strings[i]->size(), i);
}

}  // namespace
