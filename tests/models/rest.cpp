// region::rest::word (pages/region.hpp), by which the heap's own thread sleeps and is woken: background::look and
// purge_at_rest (pages/region.cpp) on one side; slab::announce, quarantine::retain and sparse::expect on the other.
//
// Must hold: work that is left while the thread goes to sleep is found by its last look, or its word is not asleep.
// Each side writes and then reads what the other one writes, so that both need sequential consistency.
#include "model.hpp"

namespace {

using namespace model;

enum Word : unsigned { awake, asleep };

struct Orders {
  memory_order sleep = mo_seq_cst;  // of the exchange in purge_at_rest
  memory_order look = mo_seq_cst;   // of the load in cache::any_pending, quarantine::retains_any, until_due
  memory_order leave = mo_seq_cst;  // of push_pending, of retained_units, of next_due
  memory_order is_asleep = mo_seq_cst;
};

template <Orders orders>
struct Rest : rl::test_suite<Rest<orders>, 3> {
  atomic<unsigned> word{awake};
  atomic<unsigned> work[2];

  Rest() {
    for (auto& one : work)
      one.store(0, mo_relaxed, $);
  }

  void wake() {
    unsigned seen = asleep;
    word.compare_exchange_strong(seen, awake, mo_relaxed, $);
  }

  void thread(unsigned number) {
    if (number == 0) {  // background::look
      unsigned seen = awake;
      word.compare_exchange_strong(seen, asleep, orders.sleep, $);
      for (auto& one : work)
        if (one.load(orders.look, $) != 0) return wake();
      return;
    }
    work[number - 1].fetch_add(1, orders.leave, $);
    if (word.load(orders.is_asleep, $) == asleep) wake();
  }

  void after() { RL_ASSERT(word.load(mo_relaxed, $) == awake); }
};

}  // namespace

int main() {
  holds<Rest<Orders{}>>("work is seen, or the thread is awake");
  is_rejected<Rest<Orders{.sleep = mo_acq_rel}>>("the thread falls asleep by acquire and release", assertion);
  is_rejected<Rest<Orders{.look = mo_acquire}>>("its last look acquires", assertion);
  is_rejected<Rest<Orders{.leave = mo_acq_rel}>>("work is left by acquire and release", assertion);
  is_rejected<Rest<Orders{.is_asleep = mo_acquire}>>("who leaves work acquires the word", assertion);
  return outcome();
}
