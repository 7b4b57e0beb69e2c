// A program that calls every entry point of malloc, on threads, in a fork and with a frame; it uses libc alone, since
// MemorySanitizer knows no other library. Usage: entry_points good|stale|leak|race|unset, of which the last four plant
// a fault in memory from malloc, for a sanitizer to find.
#include <malloc.h>
#include <pthread.h>
#include <sluice/frame.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>

static thread_local void* volatile sink;

static void check(bool holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "entry_points: %s\n", what);
  exit(1);
}

static void use(void* block, size_t size) {
  check(block != nullptr, "a request failed");
  sink = block;
  memset(block, 1, size);
}

static void* use_everything(void* unused) {
  for (size_t size = 1; size < 400000; size = size * 3 + 1) {
    void* block = malloc(size);
    use(block, size);
    block = realloc(block, size * 2);
    check(block != nullptr && static_cast<char*>(block)[size - 1] == 1, "realloc lost a byte");
    block = reallocarray(block, size, 3);
    check(malloc_usable_size(block) >= size * 3, "usable size");
    free(block);
    auto* const zeroed = static_cast<char*>(calloc(size, 1));
    check(zeroed != nullptr && zeroed[size / 2] == 0, "calloc");
    free(zeroed);
    check(posix_memalign(&block, 256, size) == 0 && reinterpret_cast<uintptr_t>(block) % 256 == 0, "posix_memalign");
    free(block);
    use(block = memalign(4096, size), size);
    free(block);
    use(block = aligned_alloc(64, size / 64 * 64 + 64), size);
    free(block);
    use(block = operator new(size), size);
    operator delete(block);
    use(block = operator new[](size, std::align_val_t{128}), size);
    operator delete[](block, std::align_val_t{128});
    use(block = operator new(size, std::nothrow), size);
    operator delete(block, size);
    const sluice_mark mark = sluice_frame_mark();
    use(sluice_frame_alloc(size, 16), size);
    sluice_frame_rewind(mark);
  }
  free(nullptr);
  free(strdup("text of libc"));
  return unused;
}

static int* shared;
static void* write_shared(void*) {
  for (int i = 0; i < 1000; ++i)
    *static_cast<int volatile*>(shared) = i;
  return nullptr;
}

static void on_two_threads(void* (*body)(void*)) {
  pthread_t threads[2];
  for (pthread_t& thread : threads)
    check(pthread_create(&thread, nullptr, body, nullptr) == 0, "no thread");
  for (const pthread_t thread : threads)
    check(pthread_join(thread, nullptr) == 0, "no join");
}

static void be_good() {
  use_everything(nullptr);
  on_two_threads(use_everything);
  const pid_t child = fork();
  if (child == 0) {
    use_everything(nullptr);
    _exit(0);
  }
  int status = -1;
  check(waitpid(child, &status, 0) == child && status == 0, "the child failed");
  malloc_trim(0);
  check(sink != nullptr, "nothing was used");
  puts("good");
}

int main(int count, char** arguments) {
  const char* const what = count > 1 ? arguments[1] : "good";
  if (strcmp(what, "stale") == 0) {
    sink = malloc(100);
    free(sink);
    static_cast<char volatile*>(sink)[5] = 1;
  } else if (strcmp(what, "leak") == 0) {
    sink = malloc(77);
    sink = nullptr;
  } else if (strcmp(what, "race") == 0) {
    shared = static_cast<int*>(malloc(sizeof *shared));
    on_two_threads(write_shared);
    free(shared);
  } else if (strcmp(what, "unset") == 0) {
    auto* const text = static_cast<char*>(malloc(100));
    sink = text;
    if (static_cast<char volatile*>(text)[50] == 7) puts("seven");
    free(text);
  } else {
    be_good();
  }
  return 0;
}
