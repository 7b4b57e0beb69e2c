// What local_runtime.c opens, linked with a C++ runtime of its own or with the shared one: operator new without memory,
// with and without a new-handler. Open it with that program.
#include <cstddef>
#include <cstdint>
#include <new>

namespace {

const std::size_t impossible = static_cast<std::size_t>(PTRDIFF_MAX) - 4096;

template <typename Allocate>
bool throws_bad_alloc(Allocate allocate) {
  try {
    void* volatile block = allocate();
    (void)block;
  } catch (const std::bad_alloc& failure) {
    return failure.what() != nullptr && *failure.what() != '\0';
  }
  return false;
}

int handler_calls = 0;

void give_up_at_the_second_call() {
  if (++handler_calls == 2) std::set_new_handler(nullptr);
}

struct Refusal {
  int reason;
};

int reason_of_refusal() {
  std::set_new_handler([] { throw Refusal{7}; });
  int reason = 0;
  try {
    void* volatile block = ::operator new(impossible);
    (void)block;
  } catch (const Refusal& refusal) {
    reason = refusal.reason;
  }
  std::set_new_handler(nullptr);
  return reason;
}

}  // namespace

extern "C" const char* check() {
  constexpr std::align_val_t wide{256};
  for (int i = 0; i < 1000; ++i) {
    if (!throws_bad_alloc([] { return ::operator new(impossible); })) return "operator new does not throw";
    if (!throws_bad_alloc([] { return ::operator new[](impossible); })) return "operator new[] does not throw";
  }
  if (!throws_bad_alloc([] { return ::operator new(impossible, wide); })) return "aligned operator new does not throw";
  if (::operator new(impossible, std::nothrow) != nullptr) return "operator new (nothrow) finds memory";
  if (::operator new(impossible, wide, std::nothrow) != nullptr) return "aligned operator new (nothrow) finds memory";

  std::set_new_handler(give_up_at_the_second_call);
  if (!throws_bad_alloc([] { return ::operator new(impossible); })) return "operator new with a handler does not throw";
  if (handler_calls != 2) return "the handler is not called until there is none";
  if (reason_of_refusal() != 7) return "what the handler throws does not pass";
  std::set_new_handler([] { throw Refusal{8}; });
  if (::operator new(impossible, std::nothrow) != nullptr) return "operator new (nothrow) with a handler finds memory";
  std::set_new_handler(nullptr);
  ::operator delete(::operator new(1000));
  return nullptr;
}
