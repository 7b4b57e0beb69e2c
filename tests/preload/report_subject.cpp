// A program in which a report waits for a reader that does not come, while other threads go on. Its stderr is a pipe;
// report_test.py reads it once the program has said "forked" on stdout. Usage: report_subject MODE
//   stats    a thread waits in malloc_stats()
//   cancel   the same, and is cancelled
//   signal   a thread waits in the dump that SIGUSR2 asks for
//   info     a thread waits in malloc_info() for a stream that another one has locked
//   info-cancel  threads that wait in malloc_info() for a full pipe are cancelled, one after the other
//   guard    a thread waits in the report of a guarded block that it has freed twice
//   many FILE  threads allocate while SIGUSR2 comes and others call malloc_stats(), and malloc_info() for one FILE
// Open it when a fork, or another thread, waits for a report.
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "subject.hpp"

namespace {

using namespace subject;

constexpr unsigned limit_seconds = 60;  // a hang ends by SIGALRM

std::atomic<int> waiting_thread{0};
FILE* stream = nullptr;

void fill(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
  const char bytes[512] = {};
  for (size_t size = sizeof bytes; size != 0; size /= 2) {
    while (write(descriptor, bytes, size) > 0) {
    }
  }
  fcntl(descriptor, F_SETFL, flags);
}

// Returns when the thread sleeps in a system call.
void wait_until_it_sleeps(const std::atomic<int>& thread) {
  char state = 'R';
  while (state != 'S') {
    usleep(1000);
    if (thread == 0) continue;
    FILE* const file = std::fopen(("/proc/self/task/" + std::to_string(thread) + "/stat").c_str(), "r");
    if (file == nullptr || std::fscanf(file, "%*d (%*[^)]) %c", &state) != 1) std::exit(3);
    std::fclose(file);
  }
}

void say_who_waits() {
  waiting_thread = static_cast<int>(syscall(SYS_gettid));
}

int open_descriptors() {
  DIR* const folder = opendir("/proc/self/fd");
  int count = 0;
  while (readdir(folder) != nullptr)
    ++count;
  closedir(folder);
  return count;
}

long address_space_kib() {
  long pages = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld", &pages) != 1) std::exit(3);
  std::fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

void allocate() {
  for (size_t i = 1; i < 2000; ++i)
    free(hide(malloc(i * 37 % 70000)));
}

// What other threads do meanwhile: allocate, ask for figures, and fork.
void go_on() {
  pthread_t other;
  const auto body = [](void*) -> void* {
    allocate();
    return nullptr;
  };
  if (pthread_create(&other, nullptr, body, nullptr) != 0) std::exit(3);
  pthread_join(other, nullptr);
  if (hide(mallinfo2().arena) == 0) std::exit(4);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      allocate();
      _exit(0);
    }
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) std::exit(5);
  }
}

void say(const char* word) {
  std::puts(word);
  std::fflush(stdout);
}

void* in_malloc_stats(void*) {
  say_who_waits();
  malloc_stats();
  pthread_testcancel();
  return nullptr;
}

void* in_malloc_info(void*) {
  say_who_waits();
  malloc_info(0, stream);
  return nullptr;
}

void* in_second_free(void*) {
  say_who_waits();
  void* const block = hide(malloc(100));
  free(block);
  free(hide(block));
  return nullptr;
}

void* until_cancelled(void*) {
  say_who_waits();
  for (;;)
    pause();
}

pthread_t start(void* (*body)(void*)) {
  waiting_thread = 0;
  pthread_t thread;
  if (pthread_create(&thread, nullptr, body, nullptr) != 0) std::exit(3);
  wait_until_it_sleeps(waiting_thread);
  return thread;
}

int stats(bool cancelled) {
  const int before = open_descriptors();
  fill(STDERR_FILENO);
  const pthread_t thread = start(in_malloc_stats);
  if (cancelled) pthread_cancel(thread);
  go_on();
  say("forked");
  void* result = nullptr;
  pthread_join(thread, &result);
  if (result != (cancelled ? PTHREAD_CANCELED : nullptr)) return 6;
  go_on();
  malloc_stats();
  return open_descriptors() == before ? 0 : 7;
}

int signalled() {
  const pthread_t thread = start(until_cancelled);
  const int before = open_descriptors();
  fill(STDERR_FILENO);
  pthread_kill(thread, SIGUSR2);
  usleep(100000);  // the handler begins; that it waits in its write is then seen
  wait_until_it_sleeps(waiting_thread);
  pthread_cancel(thread);
  go_on();
  say("forked");
  pthread_join(thread, nullptr);
  malloc_stats();
  return open_descriptors() == before ? 0 : 7;
}

int guarded() {
  fill(STDERR_FILENO);
  const pthread_t thread = start(in_second_free);
  go_on();
  say("forked");
  pthread_join(thread, nullptr);
  return 0;
}

int info() {
  char* text = nullptr;
  size_t size = 0;
  stream = open_memstream(&text, &size);
  flockfile(stream);
  const pthread_t thread = start(in_malloc_info);
  go_on();
  say("forked");
  funlockfile(stream);
  pthread_join(thread, nullptr);
  std::fclose(stream);
  const std::string_view xml(text, size);
  return xml.starts_with("<malloc") && xml.ends_with("</malloc>\n") ? 0 : 8;
}

int cancelled_info() {
  fill(STDERR_FILENO);
  stream = fdopen(dup(STDERR_FILENO), "w");
  setvbuf(stream, nullptr, _IONBF, 0);
  const pthread_t first = start(until_cancelled);  // what the first cancellation loads stays, and so does its stack
  pthread_cancel(first);
  pthread_join(first, nullptr);
  const long before = address_space_kib();
  for (int i = 0; i < 40; ++i) {
    const pthread_t thread = start(in_malloc_info);
    pthread_cancel(thread);
    void* result = nullptr;
    pthread_join(thread, &result);
    if (result != PTHREAD_CANCELED) return 6;
  }
  const long grown = address_space_kib() - before;
  go_on();
  say("forked");
  return grown < 40 * 50 ? 0 : 9;
}

int many(const char* file) {
  static std::atomic<bool> done{false};
  stream = std::fopen(file, "w");
  const auto run = [](void* (*body)(void*)) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, body, nullptr) != 0) std::exit(3);
    return thread;
  };
  const auto repeat_info = [](void*) -> void* {
    for (int i = 0; i < 20; ++i)
      if (malloc_info(0, stream) != 0) std::exit(4);
    return nullptr;
  };
  const auto repeat_stats = [](void*) -> void* {
    for (int i = 0; i < 20; ++i)
      malloc_stats();
    return nullptr;
  };
  const auto allocate_until_done = [](void*) -> void* {
    while (!done)
      allocate();
    return nullptr;
  };
  const pthread_t busy[] = {run(allocate_until_done), run(allocate_until_done), run(allocate_until_done)};
  const pthread_t asking[] = {run(repeat_info), run(repeat_info), run(repeat_stats), run(repeat_stats)};
  for (int i = 0; i < 20; ++i) {
    kill(getpid(), SIGUSR2);
    usleep(5000);
  }
  for (const pthread_t thread : asking)
    pthread_join(thread, nullptr);
  done = true;
  for (const pthread_t thread : busy)
    pthread_join(thread, nullptr);
  return std::fclose(stream) == 0 ? 0 : 5;
}

}  // namespace

int main(int count, char** arguments) {
  alarm(limit_seconds);
  const std::string_view mode = count >= 2 ? arguments[1] : "";
  if (count == 3 && mode == "many") return many(arguments[2]);
  if (mode == "stats") return stats(false);
  if (mode == "cancel") return stats(true);
  if (mode == "signal") return signalled();
  if (mode == "info") return info();
  if (mode == "guard") return guarded();
  if (mode == "info-cancel") return cancelled_info();
  return 2;
}
