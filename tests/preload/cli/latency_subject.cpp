// A program whose calls of the allocator are known: `latency_subject WHAT COUNT`. Run with two counts, the difference
// is that of its own calls. Open it with latency_test.cpp.
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

extern "C" __attribute__((weak)) void free_sized(void* block, std::size_t size);
extern "C" __attribute__((weak)) void free_aligned_sized(void* block, std::size_t alignment, std::size_t size);

namespace {

constexpr std::size_t size = 100;
constexpr std::align_val_t wide{64};

void require(bool holds) {
  if (!holds) std::abort();
}

// Nine that allocate, one of which fails, nine that free, two that resize.
void call_c(int count) {
  for (int i = 0; i < count; ++i) {
    std::free(std::malloc(size));
    std::free(std::calloc(3, size));
    std::free(aligned_alloc(64, 2 * size));
    std::free(memalign(64, size));
    std::free(valloc(size));
    void* block = nullptr;
    require(posix_memalign(&block, 64, size) == 0);
    free_sized != nullptr ? free_sized(block, size) : std::free(block);
    block = aligned_alloc(64, 2 * size);
    free_aligned_sized != nullptr ? free_aligned_sized(block, 64, 2 * size) : std::free(block);
    block = std::realloc(nullptr, size);
    block = reallocarray(block, 5, size);
    std::free(block);
    std::free(nullptr);  // is not measured
    errno = 0;
    require(std::malloc(~std::size_t{0} / 2) == nullptr && errno == ENOMEM);
  }
}

// Twelve that allocate, and each way to free once.
void call_operators(int count) {
  for (int i = 0; i < count; ++i) {
    ::operator delete(::operator new(size));
    ::operator delete[](::operator new[](size));
    ::operator delete(::operator new(size, std::nothrow), std::nothrow);
    ::operator delete[](::operator new[](size, std::nothrow), std::nothrow);
    ::operator delete(::operator new(size, wide), wide);
    ::operator delete[](::operator new[](size, wide), wide);
    ::operator delete(::operator new(size, wide, std::nothrow), wide, std::nothrow);
    ::operator delete[](::operator new[](size, wide, std::nothrow), wide, std::nothrow);
    ::operator delete(::operator new(size), size);
    ::operator delete[](::operator new[](size), size);
    ::operator delete(::operator new(size, wide), size, wide);
    ::operator delete[](::operator new[](size, wide), size, wide);
    ::operator delete(nullptr);
  }
}

// One that throws, and pairs that show that measuring goes on: three that allocate and three that free, as the end of
// the exception does. What it began with was a part of the call that threw.
void call_throwing(int count) {
  for (int i = 0; i < count; ++i) {
    bool thrown = false;
    try {
      ::operator delete(::operator new (~std::size_t{0} / 4));
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
    require(thrown);
    std::free(std::malloc(size));
    ::operator delete(::operator new(size));
  }
}

void call_pairs(int count) {
  for (int i = 0; i < count; ++i)
    std::free(std::malloc(size));
}

template <class Function>
void in_threads(int threads, Function function) {
  pthread_barrier_t all;
  pthread_barrier_init(&all, nullptr, static_cast<unsigned>(threads));
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i)
    running.emplace_back([&] {
      pthread_barrier_wait(&all);  // all have started, so that no thread gets what another has left
      function();
      pthread_barrier_wait(&all);
    });
  for (std::thread& each : running)
    each.join();
}

int left_calls = 0;

// Runs in each round of a thread's end, and so after the measuring library has had its turn.
void call_late(void* key) {
  static thread_local int rounds = 0;
  call_pairs(left_calls);
  if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS) pthread_setspecific(*static_cast<pthread_key_t*>(key), key);
}

void end_threads(int count) {
  static pthread_key_t key;
  left_calls = count;
  pthread_key_create(&key, call_late);
  for (int round = 0; round < 10; ++round)
    in_threads(4, [] { pthread_setspecific(key, &key); });
}

void fork_and_call(int count) {
  call_pairs(count);
  for (int child = 0; child < 2; ++child) {
    const pid_t pid = fork();
    require(pid >= 0);
    if (pid == 0) {
      call_pairs(count);
      in_threads(3, [count] { call_pairs(count); });
      std::exit(0);
    }
    int status = 1;
    require(waitpid(pid, &status, 0) == pid && status == 0);
  }
}

void exit_with_threads(int count) {
  for (int i = 0; i < 4; ++i)
    std::thread([] {
      for (;;)
        call_pairs(100);
    }).detach();
  call_pairs(count);
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 3) {
    std::fputs("usage: latency_subject WHAT COUNT\n", stderr);
    return 2;
  }
  const char* const what = arguments[1];
  const int count = std::atoi(arguments[2]);
  const auto is = [what](const char* name) { return std::strcmp(what, name) == 0; };
  if (is("c")) {
    call_c(count);
  } else if (is("pvalloc")) {  // which some allocators leave to the C library
    for (int i = 0; i < count; ++i)
      std::free(pvalloc(size));
  } else if (is("operators")) {
    call_operators(count);
  } else if (is("throwing")) {
    call_throwing(count);
  } else if (is("threads")) {
    in_threads(8, [count] { call_pairs(count); });
  } else if (is("ending")) {
    end_threads(count);
  } else if (is("fork")) {
    fork_and_call(count);
  } else if (is("running")) {
    exit_with_threads(count);
  } else if (is("_exit")) {
    _exit(0);
  } else {
    std::fprintf(stderr, "latency_subject: no such thing as %s\n", what);
    return 2;
  }
  return 0;
}
