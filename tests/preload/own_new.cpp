// A program that brings operator new and delete of its own, and no malloc. They count, and call malloc and free.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

static long news = 0;
static long deletes = 0;

void* operator new(size_t size) {
  ++news;
  if (void* const block = std::malloc(size)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept {
  deletes += block != nullptr;
  std::free(block);
}
void operator delete(void* block, size_t) noexcept {
  ::operator delete(block);
}

struct alignas(64) Wide {
  char bytes[200];
};

int main() {
  {
    std::vector<std::string> texts;
    for (int i = 0; i < 1000; ++i)
      texts.push_back(std::string(static_cast<size_t>(i), 'x'));
    for (int i = 0; i < 100; ++i)
      (void)std::make_unique<Wide>();
    std::free(::operator new(100));
    ::operator delete(std::malloc(100));
  }
  std::puts(news > 900 && news == deletes ? "both are used" : "one is not used");
  return 0;
}
