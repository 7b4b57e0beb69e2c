// Random calls of all entry points on 1 to 16 threads, which come and go and free each other's blocks; every block is
// filled and checked. A round is a generation of threads. Open it when blocks lose their contents under no pattern that
// a test knows. Built as soak_scarce too: there memory ends again and again, and what lives stays whole.
#include <sys/resource.h>

#include <thread>
#include <vector>

#include "store.hpp"

namespace {

using namespace soak;

#if defined(SOAK_SCARCE)
constexpr char name[] = "soak_scarce";
constexpr bool scarce = true;
constexpr size_t largest = 8 * MiB;
constexpr unsigned large_of_2000 = 60;
#else
constexpr char name[] = "soak_calls";
constexpr bool scarce = false;
constexpr size_t largest = 32 * MiB;
constexpr unsigned large_of_2000 = 1;
#endif
constexpr size_t slots_of_a_thread = 400;
constexpr int steps_of_a_thread = 20'000;
constexpr uint64_t most_threads = 16;

Exchange exchange;

void live(uint64_t seed, std::atomic<unsigned>& starting) {
  Store store(slots_of_a_thread, seed, largest, large_of_2000);
  --starting;
  store.may_run_out(scarce);
  for (int i = 0; i < steps_of_a_thread; ++i) {
    store.step();
    if (i % 4 != 0) continue;
    const size_t slot = store.any_slot();
    store.give(slot, exchange.swap(store.take(slot), store.random().next()));
  }
  store.check_all();
  for (size_t slot = 0; slot < store.slots() / 4; ++slot)  // some stay behind
    discard(exchange.swap(store.take(slot), store.random().next()));
}

// For moments nothing more may be mapped, once the threads have what they need themselves. Allocates nothing.
void ration(Random& random, const std::atomic<unsigned>& starting, const std::atomic<unsigned>& running) {
  while (starting != 0)
    sleep_ms(1);
  rlimit addresses{}, data{};
  getrlimit(RLIMIT_AS, &addresses);
  getrlimit(RLIMIT_DATA, &data);  // what is readable and writable: a reservation that becomes so, too
  while (running != 0) {
    const rlimit no_addresses{0, addresses.rlim_max}, no_data{0, data.rlim_max};
    setrlimit(RLIMIT_AS, &no_addresses);
    setrlimit(RLIMIT_DATA, &no_data);
    sleep_ms(static_cast<long>(random.below(30)));
    setrlimit(RLIMIT_AS, &addresses);
    setrlimit(RLIMIT_DATA, &data);
    sleep_ms(static_cast<long>(random.below(2)));
  }
}

void one_generation(Random& random) {
  const auto count = static_cast<unsigned>(1 + random.below(most_threads));
  std::atomic<unsigned> starting{count}, running{count};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) {
    threads.emplace_back([seed = random.next(), &starting, &running] {
      live(seed, starting);
      --running;
    });
  }
  totals.threads += count;
  if (scarce) ration(random, starting, running);
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace

int main(int count, char** arguments) {
  Run run(name, count, arguments);
  Random random(run.seed());
  const size_t before = resident_bytes();
  for (; run.goes_on(); ++totals.rounds)
    one_generation(random);
  exchange.release_all();
  if (!falls_to(before + 64 * MiB))
    Run::fail("nothing lives, and %zu KiB stay in memory", (resident_bytes() - before) / KiB);
  if (scarce && totals.faults == 0) Run::fail("no call was refused");
  return 0;
}
