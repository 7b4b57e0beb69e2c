// How much the heap's threads make one another wait: in each pattern, with 2 to 64 threads, how many lines move between
// processors for one call, and how many atomic operations it takes. No clock takes part, so that what two processors
// cannot show is seen on any machine. Open it when a line has become hotter, or to see which.
//
// The threads take turns, one operation each: nobody ever waits for a lock, but each line goes from hand to hand as
// often as it can. All figures are printed.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "calls.hpp"
#include "heap/heap.hpp"
#include "heap/thread_cache.hpp"
#include "processors.hpp"
#include "random_blocks.hpp"

namespace {

using namespace sluice;
using contention::Access;
using test::Random;

// The program's own accesses to its blocks: lines that it writes move as well, and are not the heap's. Of large blocks
// the first ones are enough.
void write(void* block, size_t bytes) {
  contention::access(block, std::min(bytes, size_t{1024}), Access::Write);
}

uint64_t calls_made;  // while they are counted

void* allocate(size_t size, bool is_counted) {
  contention::is_counted = is_counted;
  void* const block = contention::allocate(size);
  contention::is_counted = false;
  if (is_counted) ++calls_made;
  if (block == nullptr) std::abort();
  write(block, size);
  return block;
}

void release(void* block, bool is_counted) {
  contention::is_counted = is_counted;
  contention::release(block);
  contention::is_counted = false;
  if (is_counted && block != nullptr) ++calls_made;
}

// Small ones as programs ask for them.
size_t small_size(Random& random) {
  return 16 + random.below(random.chance(80) ? 112 : 900);
}

// What one thread of so many does when it is its turn.
class Pattern {
 public:
  explicit Pattern(unsigned threads) : threads_(threads) {
    for (unsigned i = 0; i < threads; ++i)
      random_.emplace_back(i + 1);
  }
  virtual ~Pattern() = default;
  virtual void step(unsigned thread, bool is_counted) = 0;
  virtual void end(unsigned thread) = 0;  // frees what is left

 protected:
  const unsigned threads_;
  std::vector<Random> random_;
};

using Blocks = std::vector<void*>;

// Each replaces blocks of its own.
template <size_t least, size_t most>
class Churn : public Pattern {
 public:
  explicit Churn(unsigned threads) : Pattern(threads), blocks_(threads, Blocks(count)) {}
  void step(unsigned thread, bool is_counted) override {
    void*& block = blocks_[thread][random_[thread].below(count)];
    release(block, is_counted);
    block =
        allocate(most <= 1024 ? small_size(random_[thread]) : least + random_[thread].below(most - least), is_counted);
  }
  void end(unsigned thread) override {
    for (void* block : blocks_[thread])
      release(block, false);
  }

 private:
  static constexpr size_t count = most <= 1024 ? 500 : 8;
  std::vector<Blocks> blocks_;
};
using ChurnSmall = Churn<16, 1024>;
using ChurnMedium = Churn<2048, 65536>;
using ChurnLarge = Churn<100'000, 1'000'000>;

// Each replaces blocks of all: half of those it frees are another thread's with two threads, nearly all with many.
class Bleeding : public Pattern {
 public:
  explicit Bleeding(unsigned threads) : Pattern(threads), blocks_(size_t{500} * threads) {}
  void step(unsigned thread, bool is_counted) override {
    void*& block = blocks_[random_[thread].below(blocks_.size())];
    release(block, is_counted);
    block = allocate(small_size(random_[thread]), is_counted);
  }
  void end(unsigned thread) override {
    for (size_t i = thread; i < blocks_.size(); i += threads_)
      release(blocks_[i], false);
  }

 private:
  Blocks blocks_;
};

// What some allocate and others free, through queues of this length.
constexpr size_t queue_length = 64;
class Flow : public Pattern {
 public:
  explicit Flow(unsigned threads) : Pattern(threads), queues_(threads) {}
  void end(unsigned thread) override {
    for (void* block : queues_[thread])
      release(block, false);
  }

 protected:
  void send(unsigned from, unsigned to, bool is_counted) {
    queues_[to].push_back(allocate(small_size(random_[from]), is_counted));
  }
  void take(unsigned thread, bool is_counted) {
    if (queues_[thread].size() < queue_length) return;
    release(queues_[thread].front(), is_counted);
    queues_[thread].erase(queues_[thread].begin());
  }
  std::vector<Blocks> queues_;
};

// The first thread sends to each of the others in turn.
class FanOut : public Flow {
 public:
  using Flow::Flow;
  void step(unsigned thread, bool is_counted) override {
    if (thread != 0) return take(thread, is_counted);
    next_ = next_ + 1 < threads_ ? next_ + 1 : 1;
    send(0, next_, is_counted);
  }

 private:
  unsigned next_ = 0;
};

// All send to the first, which frees as many as come.
class FanIn : public Flow {
 public:
  using Flow::Flow;
  void step(unsigned thread, bool is_counted) override {
    if (thread != 0) return send(thread, 0, is_counted);
    for (unsigned i = 1; i < threads_; ++i)
      take(0, is_counted);
  }
};

// Each sends to the next one.
class Pipeline : public Flow {
 public:
  using Flow::Flow;
  void step(unsigned thread, bool is_counted) override {
    take(thread, is_counted);
    send(thread, (thread + 1) % threads_, is_counted);
  }
};

// Each takes many blocks and frees them all again, so that slabs come and go.
class Phases : public Pattern {
 public:
  explicit Phases(unsigned threads) : Pattern(threads), blocks_(threads) {}
  void step(unsigned thread, bool is_counted) override {
    Blocks& own = blocks_[thread];
    if (own.size() < count && !shrinks_[thread])
      return own.push_back(allocate(small_size(random_[thread]), is_counted));
    shrinks_[thread] = own.size() > 1;
    release(own.back(), is_counted);
    own.pop_back();
  }
  void end(unsigned thread) override {
    for (void* block : blocks_[thread])
      release(block, false);
  }

 private:
  static constexpr size_t count = 1000;
  std::vector<Blocks> blocks_;
  std::array<bool, contention::most_processors> shrinks_{};
};

struct Figures {
  double moves, atomics, moving_atomics;  // for each call
  std::array<double, contention::areas> by_area;
};

// Runs the pattern on so many threads, which take turns.
Figures measure(Pattern& pattern, unsigned threads) {
  // Before they are counted, each has had slabs of all its classes. Then they take longer turns.
  constexpr unsigned warm_up = 12'000, steps = 3000, steps_a_turn_then = 10;
  std::vector<std::unique_ptr<std::binary_semaphore>> turns;
  for (unsigned i = 0; i < threads; ++i)
    turns.push_back(std::make_unique<std::binary_semaphore>(i == 0 ? 1 : 0));
  contention::forget_counts();
  calls_made = 0;
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      contention::processor = i;
      for (unsigned turn = 0; turn < warm_up / steps_a_turn_then + steps; ++turn) {
        const bool is_counted = turn >= warm_up / steps_a_turn_then;
        turns[i]->acquire();
        for (unsigned step = 0; step < (is_counted ? 1 : steps_a_turn_then); ++step)
          pattern.step(i, is_counted);
        // By the clock, threads that take turns are seldom busy. They stand for such as do nothing else.
        if (turn == 0) thread_cache->paid_until = UINT64_MAX / 2;
        turns[(i + 1) % threads]->release();
      }
      turns[i]->acquire();
      pattern.end(i);
      heap::idle();
      contention::processor = contention::no_processor;
      turns[(i + 1) % threads]->release();
      // The end of the thread is after its turn, and nothing is counted then.
    });
  }
  for (std::thread& worker : workers)
    worker.join();
  const contention::Counts& counts = contention::counts();
  const auto each = [](uint64_t count) { return static_cast<double>(count) / static_cast<double>(calls_made); };
  Figures figures{each(counts.all_moves()), each(counts.atomics), each(counts.moving_atomics), {}};
  for (unsigned i = 0; i < contention::areas; ++i)
    figures.by_area[i] = each(counts.moves[i]);
  return figures;
}

struct Case {
  const char* name;
  std::unique_ptr<Pattern> (*make)(unsigned threads);
  double most_moves[3];  // for each call, with 2, 8 and 64 threads
  double most_atomics;
};
template <typename P>
std::unique_ptr<Pattern> make(unsigned threads) {
  return std::make_unique<P>(threads);
}

void PrintTo(const Case& what, std::ostream* out) {
  *out << what.name;
}

constexpr unsigned thread_counts[] = {2, 8, 64};

// What was found, and half as much again; of rare ones more: addresses are chosen anew in each process, and what looks
// at the clock looks more often where the machine is slow.
const Case cases[] = {
    {"churn of small blocks", make<ChurnSmall>, {0.01, 0.015, 0.03}, 0.03},
    {"churn of medium blocks", make<ChurnMedium>, {0.03, 0.03, 0.06}, 0.12},
    {"churn of large blocks", make<ChurnLarge>, {13, 18, 20}, 4},
    {"bleeding", make<Bleeding>, {0.5, 0.8, 0.9}, 0.1},
    {"fan out", make<FanOut>, {1.4, 1.2, 1.9}, 0.2},
    {"fan in", make<FanIn>, {1.4, 1.6, 1.9}, 0.6},
    {"pipeline", make<Pipeline>, {0.9, 0.9, 0.9}, 0.12},
    {"phases", make<Phases>, {0.06, 0.06, 0.05}, 0.03},
};

class Contention : public testing::TestWithParam<Case> {};

TEST_P(Contention, LinesMoveNoMoreOftenThanTheyDid) {
  const Case& what = GetParam();
  std::printf("%-24s threads   moves  atomics (moving)  blocks  class b.  descr.  bitmaps  own c.  other c.  globals\n",
              "");
  for (size_t i = 0; i < std::size(thread_counts); ++i) {
    const unsigned threads = thread_counts[i];
    const Figures found = measure(*what.make(threads), threads);
    std::printf("%-24s %7u %7.3f  %7.3f (%6.3f)", what.name, threads, found.moves, found.atomics, found.moving_atomics);
    for (const double each : found.by_area)
      std::printf(" %7.3f ", each);
    std::printf("\n");
    EXPECT_LE(found.moves, what.most_moves[i]) << threads << " threads";
    EXPECT_LE(found.atomics, what.most_atomics) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Patterns, Contention, testing::ValuesIn(cases));

}  // namespace
