// Messages of mixed sizes from threads that allocate to threads that free: one to one, one to many, many to one, and a
// ring in which each thread passes on, resizes or replaces what it gets. Memory stays near what is on its way. A round
// is all four. Open it when a pipeline of threads grows.
#include <sched.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "bounded_queue.hpp"
#include "store.hpp"

namespace {

using namespace soak;

constexpr size_t many = 4;
constexpr uint64_t messages_of_a_round = 150'000;
constexpr size_t most_beside = 64 * MiB;  // free pages and caches, beside twice what lives

std::atomic<size_t> live{0}, most_live{0};

void count_live(size_t size) {
  const size_t now = live += size;
  for (size_t most = most_live; now > most && !most_live.compare_exchange_weak(most, now);) {
  }
}

Block make(Random& random) {
  const uint64_t kind = random.below(1000);
  const size_t limit = kind == 0 ? MiB : kind < 20 ? 100 * KiB : kind < 300 ? 8 * KiB : 500;
  const Block block{nullptr, 1 + random.below(limit), random.next(), 0, Origin::Malloc};
  Block made = block;
  made.data = static_cast<unsigned char*>(malloc(block.size));
  if (made.data == nullptr) Run::fail("no memory");
  fill(made);
  count_live(made.size);
  return made;
}

void end(const Block& block) {
  live -= block.size;
  discard(block);
  ++totals.operations;
}

using Queue = sluice::test::BoundedQueue<Block, Table<Block>>;

void push_or_wait(Queue& queue, const Block& block) {
  while (!queue.push(block))
    sched_yield();
}

void run_fan(Random& random, size_t producers, size_t consumers) {
  Queue queue;
  std::atomic<size_t> producing{producers};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < producers; ++i) {
    threads.emplace_back([&, seed = random.next()] {
      Random own(seed);
      for (uint64_t n = 0; n < messages_of_a_round / producers; ++n)
        push_or_wait(queue, make(own));
      --producing;
    });
  }
  for (size_t i = 0; i < consumers; ++i) {
    threads.emplace_back([&queue, &producing] {
      for (Block block;;) {
        const bool last = producing == 0;  // read first: what was pushed before is seen below
        if (queue.pop(block))
          end(block);
        else if (last)
          return;
        else
          sched_yield();
      }
    });
  }
  totals.threads += producers + consumers;
  for (std::thread& thread : threads)
    thread.join();
}

// Passes a message on, as it is, larger, or as a new one in its place.
void pass_on(Random& random, Block block, Queue& to) {
  if (random.chance(40)) {
    end(block);
    block = make(random);
  } else if (random.chance(30)) {
    require_intact(block, "in the ring");
    const size_t size = block.size + random.below(500);
    auto* const moved = static_cast<unsigned char*>(realloc(block.data, size));
    if (moved == nullptr) Run::fail("no memory");
    count_live(size - block.size);
    block.data = moved;
    require_intact(block, "after realloc");
    block.size = size;
    fill(block);
  }
  if (!to.push(block)) end(block);
}

void run_ring(Random& random) {
  std::array<Queue, many> queues;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < many; ++i) {
    threads.emplace_back([&queues, i, seed = random.next()] {
      Random own(seed);
      Block block;
      for (uint64_t n = 0; n < messages_of_a_round / many; ++n) {
        Queue& next = queues[(i + 1) % many];
        if (n % 4 == 0) pass_on(own, make(own), next);
        if (queues[i].pop(block)) pass_on(own, block, next);
      }
    });
  }
  totals.threads += many;
  for (std::thread& thread : threads)
    thread.join();
  for (Queue& queue : queues)
    for (Block block; queue.pop(block);)
      end(block);
}

// Looks at the resident set while the threads are busy.
class Guard {
 public:
  explicit Guard(size_t before) : before_(before), thread_([this] { look(); }) {}
  ~Guard() {
    done_ = true;
    thread_.join();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  void look() const {
    while (!done_) {
      const size_t now = resident_bytes();
      if (now > before_ + 2 * most_live + most_beside)
        Run::fail("%zu KiB in memory, and never more than %zu KiB lived", (now - before_) / KiB, most_live / KiB);
      sleep_ms(20);
    }
  }
  const size_t before_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace

int main(int count, char** arguments) {
  const Run run("soak_queues", count, arguments);
  Random random(run.seed());
  const size_t before = resident_bytes();
  {
    const Guard guard(before);
    for (; run.goes_on(); ++totals.rounds) {
      run_fan(random, 1, 1);
      run_fan(random, 1, many);
      run_fan(random, many, 1);
      run_ring(random);
    }
  }
  if (live != 0) Run::fail("%zu bytes were lost on their way", live.load());
  if (!falls_to(before + most_beside)) Run::fail("nothing lives, and %zu KiB stay", (resident_bytes() - before) / KiB);
  return 0;
}
