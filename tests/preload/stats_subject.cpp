// The program whose statistics are checked (statistics_test.py, process_test.py). What it allocates is known
// exactly:
//   23 blocks of 7,000 bytes, on 4 threads, of which other threads free 20;
//    9 blocks of 3,000,000 bytes, of which 7 are freed;
//    the rest is whatever libc and libstdc++ need.
// Usage: stats_subject [MODE]
//   traffic   (default) the above, and much mixed traffic between threads
//   foreign   also 5 frees, 3 reallocs and 2 size queries of pointers that are not ours
//   status N  prints "output" and exits with status N
//   _exit N   the same, through _exit
//   abort     prints "output" and aborts
//   fork      forks a child that exits normally
//   wait      prints "ready", and ends when its standard input is closed
#include <malloc.h>
#include <sys/wait.h>

#include <atomic>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

void* rare_blocks[23];
void* large_blocks[9];
std::atomic<void*> exchange[256];

void allocate_rare_blocks() {
  std::vector<std::thread> threads;
  for (size_t part = 0; part < 4; ++part) {
    threads.emplace_back([part] {
      for (size_t i = part; i < 23; i += 4)
        rare_blocks[i] = hide(memalign(64, 7000));  // for which no other class stands in
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

void free_rare_blocks_on_other_threads() {
  std::vector<std::thread> threads;
  for (size_t part = 0; part < 2; ++part) {
    threads.emplace_back([part] {
      for (size_t i = part; i < 20; i += 2)
        free(rare_blocks[i]);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

void mixed_traffic() {
  std::vector<std::thread> threads;
  for (uint64_t id = 1; id <= 4; ++id) {
    threads.emplace_back([id] {
      Sequence random(id);
      for (int i = 0; i < 50000; ++i) {
        // No size here falls into the classes of 7,000 or 3,000,000 bytes.
        const size_t size = random.below(100) == 0 ? 100000 + random.below(200000) : 1 + random.below(5000);
        void* block = random.below(5) == 0 ? calloc(1, size) : malloc(size);
        if (random.below(7) == 0) block = realloc(block, size / 2 + 1);
        if (random.below(7) == 0) {
          free(block);
          block = random.below(2) == 0 ? memalign(64, 1 + size % 4000) : ::operator new(1 + size % 4000);
        }
        free(exchange[random.below(256)].exchange(block));
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

void known_traffic() {
  allocate_rare_blocks();
  for (void*& block : large_blocks)
    block = hide(malloc(3000000));
  mixed_traffic();
  free_rare_blocks_on_other_threads();
  for (size_t i = 0; i < 7; ++i)
    free(large_blocks[i]);
}

void foreign_traffic() {
  static char bytes[256];
  for (size_t i = 0; i < 5; ++i)
    free(hide(static_cast<void*>(bytes + 16 * i)));
  for (size_t i = 0; i < 3; ++i)
    (void)hide(realloc(hide(static_cast<void*>(bytes + 16 * i)), 100));
  for (size_t i = 0; i < 2; ++i)
    (void)hide(malloc_usable_size(hide(static_cast<void*>(bytes + 16 * i))));
}

void print_output() {
  std::fputs("output\n", stdout);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "traffic";
  const int status = argc > 2 ? std::atoi(argv[2]) : 0;
  known_traffic();
  if (mode == "foreign") {
    foreign_traffic();
  } else if (mode == "status") {
    print_output();
    return status;
  } else if (mode == "_exit") {
    print_output();
    _exit(status);
  } else if (mode == "abort") {
    print_output();
    std::abort();
  } else if (mode == "fork") {
    const pid_t child = fork();
    if (child == 0) {
      free(hide(malloc(100)));
      return 0;
    }
    int child_status = -1;
    waitpid(child, &child_status, 0);
    std::printf("%d\n", static_cast<int>(child));
    return child_status == 0 ? 0 : 1;
  } else if (mode == "wait") {
    std::puts("ready");
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
  } else if (mode != "traffic") {
    std::fprintf(stderr, "stats_subject: unknown mode '%s'\n", argv[1]);
    return 2;
  }
  return 0;
}
