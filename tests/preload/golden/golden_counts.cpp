// Prints how many instructions each entry point of the library takes in a warm call: a line for each, "name<TAB>count".
// Open it to add a call to the table (golden_counts.txt beside it); scripts/golden-counts --update writes that.
//
// The program steps itself: it sets the processor's trap flag around a call, and the handler of SIGTRAP counts. That
// needs no right to trace, no other program and no counter of the processor, and the same library gives the same
// numbers on each machine, under any load. All executed instructions of the library are counted, the return included;
// what the C library executes is not, since its memset differs between machines. Of what is inlined into its caller,
// the whole caller is counted.
#include <sluice/sluice.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "stepped_instructions.hpp"

namespace {

#define COUNTED __attribute__((noinline, section("golden")))
extern "C" const char __start_golden[];
extern "C" const char __stop_golden[];

using stepped::instructions_of;

// Odd, so that one of the counts is the median.
constexpr size_t calls = 25;
constexpr size_t warm_up = 300;
using Counts = std::array<size_t, calls>;

size_t median(Counts& counts) {
  std::nth_element(counts.begin(), counts.begin() + calls / 2, counts.end());
  return counts[calls / 2];
}

void print(const char* name, Counts& counts) {
  std::printf("%s\t%zu\n", name, median(counts));
}

void* block;  // what is passed from one call to the next; global, so that no call is optimized away

// A call that allocates and one that frees, taking turns: what is freed last is allocated next.
template <typename Allocate, typename Free>
void pair(const char* allocating, const Allocate& allocate, const char* freeing, const Free& free) {
  Counts allocated{};
  Counts freed{};
  for (size_t i = 0; i < warm_up; ++i) {
    allocate();
    free();
  }
  for (size_t i = 0; i < calls; ++i) {
    allocated[i] = instructions_of(allocate);
    freed[i] = instructions_of(free);
  }
  print(allocating, allocated);
  if (freeing != nullptr) print(freeing, freed);
}

// Many blocks allocated one after the other where none of the size was freed before, then freed in that order.
void run_of_blocks(size_t size, const char* allocating, const char* freeing) {
  static std::array<void*, calls> blocks;
  Counts allocated{};
  Counts freed{};
  for (size_t i = 0; i < calls; ++i)
    allocated[i] = instructions_of([&] { blocks[i] = std::malloc(size); });
  for (size_t i = 0; i < calls; ++i)
    freed[i] = instructions_of([&] { std::free(blocks[i]); });
  print(allocating, allocated);
  print(freeing, freed);
}

void same_again(const char* name, void (*call)()) {
  Counts counts{};
  for (size_t i = 0; i < warm_up; ++i)
    call();
  for (size_t& taken : counts)
    taken = instructions_of(call);
  print(name, counts);
}

// More than one list of their class holds, so that its two lists change places each time.
void eight_of_4096_bytes() {
  void* blocks[8];
  for (void*& each : blocks)
    each = std::malloc(4096);
  for (void* const each : blocks)
    std::free(each);
}

void c_functions() {
  const auto free_block = [] { std::free(block); };
  pair(
      "malloc", [] { block = std::malloc(64); }, "free", free_block);
  pair(
      "malloc of 20000 bytes", [] { block = std::malloc(20000); }, "free of it", free_block);
  same_again("eight of 4096 bytes, freed in turn", eight_of_4096_bytes);
  run_of_blocks(176, "malloc, never used before", "free, in order of allocation");
  pair(
      "calloc", [] { block = std::calloc(1, 64); }, nullptr, free_block);
  pair(
      "aligned_alloc to 64", [] { block = std::aligned_alloc(64, 64); }, nullptr, free_block);
  pair(
      "aligned_alloc to 4096", [] { block = std::aligned_alloc(4096, 64); }, nullptr, free_block);
  pair(
      "posix_memalign to 64", [] { (void)!posix_memalign(&block, 64, 64); }, nullptr, free_block);
  block = std::malloc(64);
  same_again("realloc in place", [] { block = std::realloc(block, 60); });
  std::free(block);
  block = std::malloc(100'000);
  same_again("realloc of a large block in place", [] { block = std::realloc(block, 100'008); });
  std::free(block);
  block = std::malloc(64);
  pair(
      "realloc to a larger class", [] { block = std::realloc(block, 200); }, nullptr,
      [] { block = std::realloc(block, 64); });
  std::free(block);
}

void cpp_functions() {
  pair(
      "new", [] { block = ::operator new(64); }, "delete", [] { ::operator delete(block); });
  pair(
      "new[]", [] { block = ::operator new[](64); }, "delete[]", [] { ::operator delete[](block); });
  pair(
      "new, nothrow", [] { block = ::operator new(64, std::nothrow); }, "delete, sized",
      [] { ::operator delete(block, 64); });
  constexpr std::align_val_t line{64};
  pair(
      "new, aligned to 64", [] { block = ::operator new(64, line); }, "delete, aligned, sized",
      [] { ::operator delete(block, 64, line); });
}

sluice_mark mark;

// The functions of the header, inlined as users have them: the caller's return is counted with each.
COUNTED void frame_alloc_constant() {
  block = sluice_frame_alloc(40, 8);
}
COUNTED void frame_alloc_any(size_t size) {
  block = sluice_frame_alloc(size, 16);
}
COUNTED void frame_mark() {
  mark = sluice_frame_mark();
}
COUNTED void frame_rewind() {
  sluice_frame_rewind(mark);
}
volatile size_t any_size = 100;

void frames() {
  pair("frame: mark", frame_mark, nullptr, frame_rewind);
  pair("frame: alloc of 40 bytes", frame_alloc_constant, "frame: rewind", frame_rewind);
  pair(
      "frame: alloc of any size", [] { frame_alloc_any(any_size); }, nullptr, frame_rewind);
}

sluice_scope scope;

void scopes() {
  const auto enter = [] { (void)!sluice_scope_enter(&scope, SLUICE_ROUTE); };
  const auto leave = [] { sluice_scope_leave(&scope); };
  pair("scope: enter", enter, "scope: leave", leave);
  enter();
  pair(
      "scope: malloc", [] { block = std::malloc(64); }, "scope: free", [] { std::free(block); });
  leave();
}

}  // namespace

int main() {
  if (!sluice_present() || !stepped::prepare(__start_golden, __stop_golden)) {
    std::fputs("golden_counts: it runs on another malloc, or cannot step itself\n", stderr);
    return 1;
  }
  setvbuf(stdout, nullptr, _IOFBF, 1 << 14);
  c_functions();
  cpp_functions();
  frames();
  scopes();
  return std::fflush(stdout) == 0 ? 0 : 1;
}
