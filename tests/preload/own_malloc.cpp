// A program that brings malloc, calloc, realloc and free of its own, but neither operator new nor delete: blocks go
// from one to the other, as without a preload. Its free stops the process at what it did not give out, and before main.
// With OWN_MALLOC_WRAPS defined its malloc only counts, and asks the next one.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<long> live{0};

// Returns: value, of which the compiler no longer knows anything.
template <class T>
T hide(T value) {
  asm volatile("" : "+r"(value) : : "memory");
  return value;
}

#if defined(OWN_MALLOC_WRAPS)

void* take(size_t size) {
  static auto* const next = reinterpret_cast<void* (*)(size_t)>(dlsym(RTLD_NEXT, "malloc"));
  return next(size);
}
void give_back(void* block) {
  static auto* const next = reinterpret_cast<void (*)(void*)>(dlsym(RTLD_NEXT, "free"));
  next(block);
}
size_t size_of(void* block) {
  static auto* const next = reinterpret_cast<size_t (*)(void*)>(dlsym(RTLD_NEXT, "malloc_usable_size"));
  return next(block);
}

#else

constexpr size_t header = 16;
constexpr size_t arena_size = size_t{1} << 30;
constexpr uint64_t magic = 0x6f776e206d616c6c;

// A mapping of its own, of which nothing is used twice.
std::atomic<char*> arena{nullptr};
std::atomic<size_t> used{0};

char* arena_start() {
  char* seen = arena.load();
  if (seen != nullptr) return seen;
  void* const mapped =
      mmap(nullptr, arena_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) std::abort();
  if (arena.compare_exchange_strong(seen, static_cast<char*>(mapped))) return static_cast<char*>(mapped);
  munmap(mapped, arena_size);
  return seen;
}

void* take(size_t size) {
  const size_t whole = header + (size + 15) / 16 * 16;
  char* const block = arena_start() + used.fetch_add(whole) + header;
  if (block + size > arena_start() + arena_size) return nullptr;
  memcpy(block - 8, &size, 8);
  memcpy(block - 16, &magic, 8);
  return block;
}

bool has_begun = false;

void give_back(void* block) {
  if (!has_begun) _exit(4);
  char* const start = arena_start();
  uint64_t mark = 0;
  if (block > start && block < start + arena_size) memcpy(&mark, static_cast<char*>(block) - 16, 8);
  if (mark != magic) {
    static const char text[] = "own_malloc: a block that is not of this malloc\n";
    if (write(2, text, sizeof text - 1) < 0) _exit(3);
    _exit(2);
  }
  memset(static_cast<char*>(block) - 16, 0, 8);
}

size_t size_of(void* block) {
  size_t size = 0;
  memcpy(&size, static_cast<char*>(block) - 8, 8);
  return size;
}

#endif

}  // namespace

extern "C" {

void* malloc(size_t size) {
  ++live;
  return take(size);
}
void free(void* block) {
  if (block == nullptr) return;
  --live;
  give_back(block);
}
void* calloc(size_t count, size_t size) {
  void* const block = malloc(count * size);
  return block != nullptr ? memset(block, 0, count * size) : nullptr;
}
void* realloc(void* block, size_t size) {
  if (block == nullptr) return malloc(size);
  void* const moved = malloc(size);
  if (moved == nullptr) return nullptr;
  const size_t old_size = size_of(block);
  memcpy(moved, block, old_size < size ? old_size : size);
  free(block);
  return moved;
}

}  // extern "C"

namespace {

struct alignas(64) Wide {
  char bytes[200];
};

void exchange() {
  for (size_t size = 1; size < 200000; size += size / 3 + 1) {
    ::operator delete(hide(malloc(size)));
    ::operator delete[](hide(calloc(1, size)));
    ::operator delete (hide(strdup("from the C library")), size_t{19});
    free(hide(::operator new(size)));
    free(hide(::operator new[](size, std::nothrow)));
    void* const grown = realloc(hide(::operator new(size)), 2 * size);
    ::operator delete(hide(grown), std::nothrow);
  }
  ::operator delete(hide(static_cast<void*>(nullptr)));
  std::vector<std::string> texts;
  for (int i = 0; i < 1000; ++i)
    texts.push_back(std::string(static_cast<size_t>(i), 'x'));
  for (int i = 0; i < 100; ++i) {
    const auto wide = std::make_unique<Wide>();
    if (reinterpret_cast<uintptr_t>(hide(wide.get())) % 64 != 0) std::exit(1);
  }
}

}  // namespace

int main() {
#if !defined(OWN_MALLOC_WRAPS)
  has_begun = true;
#endif
  const long before = live;
  ::operator delete(hide(::operator new(100)));
  const void* const block = hide(::operator new(100));
  const bool passed_on = live == before + 1;
  ::operator delete(const_cast<void*>(block));
  exchange();
  std::thread(exchange).join();
  std::puts(passed_on ? "operator new calls malloc" : "operator new does not call malloc");
  return 0;
}
