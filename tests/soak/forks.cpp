// Forks of two threads while eight others allocate: each child checks and frees what it inherited, allocates, and then
// ends, execs, forks again or starts a thread; parent and child keep whole heaps. A round is a fork. Open it when a
// child hangs or finds a block changed.
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>
#include <thread>
#include <vector>

#include "store.hpp"

namespace {

using namespace soak;

constexpr size_t allocating_threads = 8;
constexpr size_t forking_threads = 2;
constexpr size_t slots = 300;
constexpr size_t largest = MiB;
constexpr char true_path[] = "/bin/true";

Exchange exchange;
std::atomic<bool> stopping{false};

// At low priority, so that a fork does not wait for eight time slices of others.
void allocate_until_stopped(uint64_t seed) {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
  Store store(slots, seed, largest);
  while (!stopping) {
    store.step();
    const size_t slot = store.any_slot();
    store.give(slot, exchange.swap(store.take(slot), store.random().next()));
  }
}

void require_end(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) Run::fail("waitpid: errno %d", errno);
  if (WIFSIGNALED(status))
    Run::fail("a child %s (signal %d)", WTERMSIG(status) == SIGALRM ? "hung" : "crashed", WTERMSIG(status));
  if (status != 0) Run::fail("a child ended with status %d", WEXITSTATUS(status));
}

pid_t fork_counted() {
  const pid_t child = fork();
  if (child < 0) Run::fail("fork: errno %d", errno);
  if (child != 0) ++totals.forks;
  if (child == 0) Run::limit_child();
  return child;
}

void use(Store& inherited, Random& random) {
  inherited.check_all();
  for (size_t slot = random.below(3); slot < inherited.slots(); slot += 2)
    inherited.release(slot);
  for (int i = 0; i < 300; ++i)
    inherited.step();
}

// Ends the process, or replaces it.
[[noreturn]] void live_as_child(Store& inherited, uint64_t seed) {
  Random random(seed);
  use(inherited, random);
  switch (random.below(8)) {
    case 0:
      execl(true_path, true_path, static_cast<char*>(nullptr));
      _exit(2);
    case 1: {  // a grandchild, while this one goes on
      const pid_t child = fork_counted();
      use(inherited, random);
      if (child == 0) _exit(0);
      require_end(child);
      break;
    }
    case 2:  // the caches of the threads that stayed behind serve others
      std::thread([seed] {
        Store own(slots, seed, largest);
        for (int i = 0; i < 500; ++i)
          own.step();
      }).join();
      break;
    case 3:  // blocks of threads that do not exist here
      exchange.release_all();
      break;
    case 4:
      inherited.release_all();
      break;
    default:
      break;
  }
  inherited.check_all();
  _exit(0);
}

void fork_in_turn(const Run& run, uint64_t seed) {
  Store store(slots, seed, largest);
  while (run.goes_on()) {
    for (int i = 0; i < 100; ++i)
      store.step();
    const uint64_t seed_of_child = store.random().next();
    const pid_t child = fork_counted();
    if (child == 0) live_as_child(store, seed_of_child);
    store.step();
    require_end(child);
    ++totals.rounds;
  }
  store.check_all();
}

}  // namespace

int main(int count, char** arguments) {
  const Run run("soak_forks", count, arguments);
  Random random(run.seed());
  std::vector<std::thread> allocating, forking;
  for (size_t i = 0; i < allocating_threads; ++i)
    allocating.emplace_back(allocate_until_stopped, random.next());
  for (size_t i = 0; i < forking_threads; ++i)
    forking.emplace_back([&run, seed = random.next()] { fork_in_turn(run, seed); });
  totals.threads += allocating_threads + forking_threads;
  for (std::thread& thread : forking)
    thread.join();
  stopping = true;
  for (std::thread& thread : allocating)
    thread.join();
  exchange.release_all();
  return 0;
}
