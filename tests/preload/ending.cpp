// A program that ends in the way that its argument names, with work left for afterwards: handlers and static objects
// that allocate and free when the statistics are out already. Usage: ending HOW; an unknown one ends with status 2.
// Open it when a program hangs or dies after its last line.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int status = 7;

void work() {
  std::vector<std::string> texts;
  for (size_t i = 0; i < 300; ++i)
    texts.emplace_back(i * 40, 'x');
  std::free(std::realloc(std::malloc(100), 300000));
}

// Made before main, and destroyed after all that main has registered.
struct Static {
  std::map<int, std::string> table;
  Static() {
    for (int i = 0; i < 1000; ++i)
      table[i] = std::string(static_cast<size_t>(i), 'y');
  }
  ~Static() {
    for (int i = 0; i < 1000; ++i) {
      if (table[i] != std::string(static_cast<size_t>(i), 'y')) _exit(99);
    }
    table.clear();
    work();
  }
};
Static of_program;
thread_local std::vector<std::string> of_thread(10, std::string(1000, 'z'));

std::atomic<bool> running{false};

void start_threads_that_never_end() {
  for (int i = 0; i < 4; ++i) {
    std::thread([] {
      for (;;) {
        work();
        running = true;
      }
    }).detach();
  }
  while (!running) {
  }
}

struct Way {
  const char* name;
  int (*end)();
};

const Way ways[] = {
    {"return", [] { return status; }},
    {"exit",
     []() -> int {
       std::atexit(work);
       std::atexit([] { std::atexit(work); });
       std::exit(status);
     }},
    {"on_exit",
     []() -> int {
       on_exit(
           [](int, void* block) {
             std::free(block);
             work();
           },
           std::malloc(1000));
       std::exit(status);
     }},
    {"quick_exit",
     []() -> int {
       std::at_quick_exit(work);
       std::quick_exit(status);
     }},
    {"_exit", []() -> int { _exit(status); }},
    {"exit-of-thread",
     [] {
       std::thread([] {
         of_thread.emplace_back(5000, 'w');
         std::exit(status);
       }).join();
       return 1;
     }},
    {"return-while-threads-run",
     [] {
       start_threads_that_never_end();
       return status;
     }},
    {"exit-while-threads-run",
     []() -> int {
       start_threads_that_never_end();
       std::atexit(work);
       std::exit(status);
     }},
    {"pthread_exit-of-main",
     []() -> int {
       std::thread([] {
         work();
         std::exit(status);
       }).detach();
       pthread_exit(nullptr);
     }},
    {"abort",
     []() -> int {
       std::signal(SIGABRT, [](int) {
         std::free(std::malloc(100));
         _exit(status);
       });
       std::abort();
     }},
    {"terminate-handler",
     []() -> int {
       std::set_terminate([] {
         work();
         _exit(status);
       });
       throw std::string(100, 'e');
     }},
    {"closed-library",
     [] {
       // What the loader knows as loaded by us is closed, again and again: the library stays.
       Dl_info where;
       if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &where) == 0) return 1;
       for (int i = 0; i < 10; ++i) {
         void* const library = dlopen(where.dli_fname, RTLD_NOW);
         if (library == nullptr) return 1;
         dlclose(library);
         dlclose(library);
         work();
       }
       return status;
     }},
};

}  // namespace

int main(int count, char** arguments) {
  of_thread.emplace_back(3000, 'v');
  work();
  for (const Way& way : ways) {
    if (count > 1 && std::strcmp(arguments[1], "list") == 0) std::puts(way.name);
    if (count > 1 && std::strcmp(arguments[1], way.name) == 0) {
      std::puts("output");
      std::fflush(stdout);
      return way.end();
    }
  }
  return count > 1 && std::strcmp(arguments[1], "list") == 0 ? 0 : 2;
}
