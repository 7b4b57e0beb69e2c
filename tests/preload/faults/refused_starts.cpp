// A program whose forks, threads and libraries cannot be started, while other threads of it allocate: each refusal is
// reported, nothing leaks, the heap's locks are free again, and once the system relents all of it works. Run by
// refused_calls_test.py under refuse_calls; open it when a program hangs or grows after a fork or a thread that failed.
//
// Usage: refused_starts fork|thread|library FILE. Ends with status 0 when all held, 1 and a line when not.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "relief.h"

namespace {

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "refused_starts: %s (errno %d)\n", what, errno);
  _exit(1);
}

size_t mapped_pages() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  unsigned long pages = 0;
  if (file == nullptr || std::fscanf(file, "%lu", &pages) != 1) fail("no /proc");
  std::fclose(file);
  return pages;
}

void use_the_heap() {
  void* blocks[64];
  for (size_t i = 0; i < 64; ++i) {
    blocks[i] = std::malloc(1 + i * i * 20);
    if (blocks[i] == nullptr) fail("no memory");
    std::memset(blocks[i], static_cast<int>(i), 1 + i * i * 20);
  }
  for (size_t i = 0; i < 64; ++i) {
    if (static_cast<unsigned char*>(blocks[i])[i * i * 20] != i) fail("a block changed");
    std::free(blocks[i]);
  }
}

// Returns: whether there was a child; it has used the heap and ended.
bool try_fork() {
  const pid_t child = fork();
  if (child == 0) {
    use_the_heap();
    _exit(0);
  }
  int status = 0;
  if (child > 0 && (waitpid(child, &status, 0) != child || status != 0)) fail("a child did not end well");
  if (child < 0 && errno != EAGAIN && errno != ENOMEM) fail("fork failed for another reason");
  use_the_heap();
  return child > 0;
}

bool try_thread() {
  pthread_t thread;
  const auto body = [](void*) -> void* {
    use_the_heap();
    return nullptr;
  };
  const int error = pthread_create(&thread, nullptr, body, nullptr);
  if (error == 0) pthread_join(thread, nullptr);
  if (error != 0 && error != EAGAIN && error != ENOMEM) fail("pthread_create failed for another reason");
  return error == 0;
}

bool try_library(const char* file) {
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr && dlerror() == nullptr) fail("dlopen does not say why");
  if (library != nullptr) dlclose(library);
  use_the_heap();
  return library != nullptr;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string_view what = count > 1 ? arguments[1] : "";
  const char* const file = count > 2 ? arguments[2] : "";
  const auto attempt = [&] {
    return what == "fork" ? try_fork() : what == "thread" ? try_thread() : try_library(file);
  };
  const bool refuses_all = what != "library";
  std::atomic<bool> done{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 2; ++i)
    busy.emplace_back([&] {
      while (!done) {
        use_the_heap();
        usleep(100);
      }
    });
  use_the_heap();
  ask_for_refusals();
  size_t before = 0;
  for (int i = 0; i < (refuses_all ? 1000 : 20); ++i) {
    if (attempt() && refuses_all) fail("started, though the call is refused");
    if (i == 100) before = mapped_pages();
    if (i % 100 == 0) (void)malloc_trim(0);
  }
  if (refuses_all && mapped_pages() > before + 64 * 1024) fail("failing starts leave mappings behind");
  ask_for_relief();
  for (int i = 0; i < 5; ++i)
    if (!attempt()) fail("not started, though nothing is refused any more");
  done = true;
  for (std::thread& thread : busy)
    thread.join();
  return 0;
}
