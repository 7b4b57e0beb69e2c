// Signals that arrive while threads allocate. Their handlers do what a handler may do, on the thread's stack and on one
// of their own: contents stay whole. Threads that let them in only outside of malloc have handlers that allocate. On
// Sluice a third kind interrupts malloc with malloc, which no allocator makes safe: there the process, a forked one,
// must not hang. A round is a thousand signals. Open it when a program with a timer or a profiler hangs.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <array>
#include <thread>
#include <vector>

#include "sluice/sluice.h"
#include "store.hpp"

namespace {

using namespace soak;

constexpr size_t workers = 3;
constexpr size_t slots = 200;
constexpr size_t largest = 8 * MiB;
constexpr uint64_t signals_of_a_round = 1000;

std::atomic<uint64_t> handled{0};
std::atomic<bool> stopping{false};
std::atomic<uint64_t> crashes{0};
int nowhere = -1;
unsigned char* scratch = nullptr;  // from malloc, read and written by the handlers

void may_do(int) {
  const int saved = errno;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  (void)!write(nowhere, &now, sizeof now);
  for (size_t i = 0; i < 4096; i += 64)
    scratch[i] = static_cast<unsigned char>(now.tv_nsec);
  sigset_t pending;
  sigpending(&pending);
  ++handled;
  errno = saved;
}

void allocate(int) {
  const int saved = errno;
  void* blocks[8];
  for (size_t i = 0; i < 8; ++i)
    blocks[i] = hide(malloc(i * i * i * 300 + 1));
  for (void* const block : blocks)
    free(block);
  ++handled;
  errno = saved;
}

void install(int signal_number, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags | SA_RESTART;
  sigaction(signal_number, &action, nullptr);
}

class AlternateStack {
 public:
  AlternateStack() : memory_(64 * KiB) { set(0); }
  ~AlternateStack() { set(SS_DISABLE); }
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;

 private:
  void set(int flags) {
    stack_t stack{};
    stack.ss_sp = &memory_[0];
    stack.ss_size = memory_.size();
    stack.ss_flags = flags;
    sigaltstack(&stack, nullptr);
  }
  Table<char> memory_;
};

void mask(int how, int signal_number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal_number);
  pthread_sigmask(how, &set, nullptr);
}

// SIGUSR1 interrupts it anywhere, SIGUSR2 only where it lets it in.
void work(uint64_t seed) {
  const AlternateStack stack;
  mask(SIG_BLOCK, SIGUSR2);
  Store store(slots, seed, largest);
  while (!stopping) {
    for (int i = 0; i < 20; ++i)
      store.step();
    mask(SIG_UNBLOCK, SIGUSR2);
    sched_yield();
    mask(SIG_BLOCK, SIGUSR2);
  }
}

// Sends signals to the threads in turn until so many have been handled.
void bombard(std::vector<std::thread>& threads, uint64_t count) {
  const uint64_t until = handled + count;
  for (uint64_t n = 0; handled < until; ++n) {
    pthread_kill(threads[n % threads.size()].native_handle(), n % 3 == 0 ? SIGUSR2 : SIGUSR1);
    for (int i = 0; i < 10; ++i)
      sched_yield();
  }
}

void allowed_things(Random& random) {
  stopping = false;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < workers; ++i)
    threads.emplace_back(work, random.next());
  totals.threads += workers;
  bombard(threads, signals_of_a_round);
  stopping = true;
  for (std::thread& thread : threads)
    thread.join();
}

// The child of a fork: its one thread is interrupted in malloc by handlers that call malloc. It may lose blocks and may
// die of that; it may not wait for itself.
[[noreturn]] void interrupt_malloc_with_malloc(uint64_t seed) {
  Run::limit_child();
  install(SIGVTALRM, allocate, SA_ONSTACK);
  const AlternateStack stack;
  const itimerval often = {{0, 1000}, {0, 1000}};  // of the processor's time
  setitimer(ITIMER_VIRTUAL, &often, nullptr);
  Random random(seed);
  static void* blocks[200];
  const uint64_t until = handled + 20;
  while (handled < until) {
    void*& block = blocks[random.below(200)];
    free(block);
    block = hide(malloc(random.below(random.chance(2) ? MiB : 2000)));
  }
  _exit(0);
}

void forbidden_things(Random& random) {
  const uint64_t seed = random.next();
  const pid_t child = fork();
  if (child < 0) Run::fail("fork: errno %d", errno);
  if (child == 0) interrupt_malloc_with_malloc(seed);
  ++totals.forks;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) Run::fail("a handler that allocates hung inside malloc");
  if (status != 0) ++crashes;
}

}  // namespace

int main(int count, char** arguments) {
  const Run run("soak_signals", count, arguments);
  nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  scratch = static_cast<unsigned char*>(calloc(1, 4096));
  install(SIGUSR1, may_do, SA_ONSTACK);
  install(SIGUSR2, allocate, 0);
  mask(SIG_BLOCK, SIGUSR1);
  mask(SIG_BLOCK, SIGUSR2);
  Random random(run.seed());
  for (; run.goes_on(); ++totals.rounds) {
    mask(SIG_UNBLOCK, SIGUSR1);
    install(SIGALRM, may_do, 0);
    const itimerval often = {{0, 500}, {0, 500}}, never{};
    setitimer(ITIMER_REAL, &often, nullptr);
    allowed_things(random);
    setitimer(ITIMER_REAL, &never, nullptr);
    mask(SIG_BLOCK, SIGUSR1);
    signal(SIGALRM, SIG_DFL);
    if (sluice_present()) forbidden_things(random);
  }
  if (crashes != 0)
    std::printf("soak_signals: %llu of %llu processes died as a handler allocated inside malloc, which is undefined\n",
                static_cast<unsigned long long>(crashes), static_cast<unsigned long long>(totals.forks));
  std::fflush(stdout);
  free(scratch);
  return 0;
}
