// Short threads in batches: each allocates, frees blocks of others, leaves blocks to others, and allocates in
// destructors of its thread_local objects and keys; some are detached. A round is a thread. The resident set at the end
// is that of the first tenth. Open it when a program grows as its threads come and go.
#include <array>
#include <thread>
#include <vector>

#include "store.hpp"

namespace {

using namespace soak;

constexpr size_t batch = 16;
constexpr size_t slots = 60;
constexpr size_t largest = 64 * KiB;
constexpr size_t most_growth = 24 * MiB;  // what is kept of ended threads settles after some 10,000 of them

Exchange exchange;
std::atomic<int> detached{0};
pthread_key_t key;

// Runs when the thread ends, and again in later rounds of its destructors.
void live_on(void* value) {
  auto* const left = static_cast<unsigned char*>(value);
  const unsigned char rounds = left[0];
  Store store(8, rounds, largest);
  for (int i = 0; i < 20; ++i)
    store.step();
  free(value);
  if (rounds == 0) return;
  auto* const next = static_cast<unsigned char*>(malloc(64));
  next[0] = static_cast<unsigned char>(rounds - 1);
  pthread_setspecific(key, next);
}

class Leaving {
 public:
  void set(uint64_t seed, bool is_detached) {
    seed_ = seed;
    detached_ = is_detached;
  }
  ~Leaving() {
    {
      Store store(16, seed_, largest);
      for (int i = 0; i < 30; ++i)
        store.step();
      discard(exchange.swap(store.take(0), seed_));
    }
    if (detached_) --detached;
  }

 private:
  uint64_t seed_ = 0;
  bool detached_ = false;
};
thread_local Leaving leaving;

void live_briefly(uint64_t seed, bool is_detached) {
  leaving.set(seed, is_detached);
  auto* const value = static_cast<unsigned char*>(malloc(64));
  value[0] = static_cast<unsigned char>(seed % PTHREAD_DESTRUCTOR_ITERATIONS);
  pthread_setspecific(key, value);
  Store store(slots, seed, largest);
  for (int i = 0; i < 100; ++i)
    store.step();
  for (size_t i = 0; i < 20; ++i)
    store.give(i, exchange.swap(store.take(i), store.random().next()));
}

void wait_for_detached() {
  while (detached != 0)
    sleep_ms(1);
}

void one_batch(Random& random) {
  std::array<std::thread, batch> threads;
  for (std::thread& thread : threads) {
    const bool leave_alone = random.chance(25);
    if (leave_alone) ++detached;
    thread = std::thread(live_briefly, random.next(), leave_alone);
    if (leave_alone) thread.detach();
  }
  for (std::thread& thread : threads)
    if (thread.joinable()) thread.join();
  if (detached > 64) wait_for_detached();
  totals.threads += batch;
  totals.rounds += batch;
}

}  // namespace

int main(int count, char** arguments) {
  const Run run("soak_threads", count, arguments);
  pthread_key_create(&key, live_on);
  Random random(run.seed());
  size_t first_tenth = 0;
  while (run.goes_on()) {
    one_batch(random);
    if (first_tenth != 0 || totals.rounds < std::max<uint64_t>(run.rounds() / 10, batch)) continue;
    wait_for_detached();
    exchange.release_all();
    first_tenth = resident_bytes();
  }
  wait_for_detached();
  exchange.release_all();
  if (!falls_to(first_tenth + most_growth))
    Run::fail("%llu threads later the resident set is %zu KiB more than after the first tenth",
              static_cast<unsigned long long>(totals.threads), (resident_bytes() - first_tenth) / KiB);
  return 0;
}
