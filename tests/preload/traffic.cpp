// A program whose threads allocate, check and free until a line comes on standard input. Debuggers attach to it, and it
// ends with status 0 if every block kept its payload. Usage: traffic [THREADS]
#include <malloc.h>

#include <atomic>
#include <thread>
#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

std::atomic<bool> stop{false};
std::atomic<int> damaged{0};

void allocate_and_free(uint64_t seed) {
  constexpr size_t count = 200;
  Sequence random(seed);
  void* blocks[count] = {};
  size_t sizes[count] = {};
  while (!stop) {
    const size_t at = random.below(count);
    if (blocks[at] != nullptr && !holds(blocks[at], sizes[at], at)) ++damaged;
    free(blocks[at]);
    sizes[at] = 1 + random.below(random.below(50) == 0 ? 200000 : 1000);
    blocks[at] = malloc(sizes[at]);
    fill(blocks[at], sizes[at], at);
  }
  for (void* const block : blocks)
    free(block);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::thread> threads;
  for (long i = 0; i < (count > 1 ? std::strtol(arguments[1], nullptr, 10) : 3); ++i)
    threads.emplace_back(allocate_and_free, static_cast<uint64_t>(i) + 1);
  std::puts("ready");
  std::fflush(stdout);
  (void)std::getchar();
  stop = true;
  for (std::thread& thread : threads)
    thread.join();
  for (size_t size = 1; size < 1000000; size += size / 3 + 1)
    free(hide(malloc(size)));
  std::puts("done");
  return damaged != 0;
}
