// A program with sites of known kinds, each a function of its own, for `sluice advise`.
#include <cstddef>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

void* volatile escape;

[[gnu::noinline]] void* message() {
  return std::malloc(200);
}

[[gnu::noinline]] void* handed_over() {
  return std::malloc(300);
}

[[gnu::noinline]] void* node() {
  return std::malloc(24);
}

[[gnu::noinline]] void* just_above() {
  return std::malloc(1100);  // a class of 1,152 holds 1,041 too; 1,100 wastes little
}

[[gnu::noinline]] void* far_above() {
  return std::malloc(16700);  // more than 16,640: the next class is 18,432
}

[[gnu::noinline]] long table(long count) {
  std::vector<long> all;
  for (long i = 0; i < count; ++i)
    all.push_back(i);
  return all.back();
}

long volatile last;

}  // namespace

int main() {
  std::vector<void*> kept;
  kept.reserve(40'000);
  for (int i = 0; i < 40'000; ++i)
    kept.push_back(node());
  std::vector<void*> large;
  large.reserve(2'000);
  for (int i = 0; i < 1'000; ++i)
    large.push_back(far_above());
  for (int i = 0; i < 1'000; ++i)
    large.push_back(just_above());
  for (int i = 0; i < 100'000; ++i) {
    escape = message();
    std::free(escape);
  }
  std::vector<void*> handed;
  handed.reserve(40'000);
  for (int i = 0; i < 40'000; ++i)
    handed.push_back(handed_over());
  std::thread([&] {
    for (void* const each : handed)
      std::free(each);
  }).join();
  for (int i = 0; i < 20; ++i) {
    last = table(1 << 17);
  }
  for (void* const each : large)
    std::free(each);
  for (void* const each : kept)
    std::free(each);
  return 0;
}
