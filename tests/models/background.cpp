// The life of the heap's own thread: start and stop_own (heap/background.cpp). `thread` and `process` are written while
// the state is Starting, and read by who ends it.
//
// Must hold: the last thread with a cache ends it, or the process would never end; whoever ends it knows it; one thread
// alone does.
#include "model.hpp"

namespace {

using namespace model;

enum State : unsigned { None, Starting, Running, Stopping };

struct Orders {
  memory_order started = mo_release;
  memory_order change = mo_acq_rel;
  bool counts_under_lock = true;  // who has a cache, in end_thread
};

// Thread 0 starts it and ends, as thread 1 does; the last of the two ends it. Thread 2 makes room for one of the
// program's threads (stop_for_good), if `makes_room`.
template <Orders orders, bool makes_room>
struct Background : rl::test_suite<Background<orders, makes_room>, makes_room ? 3 : 2> {
  atomic<unsigned> state{None};
  var<unsigned> thread_of_heap;
  rl::mutex registry_lock;
  unsigned live = 2, stops = 0;

  Background() { thread_of_heap($) = 0; }

  bool change(unsigned from, unsigned to) {
    return state.compare_exchange_strong(from, to, orders.change, $, mo_relaxed, $);
  }
  void start() {
    if (state.load(mo_relaxed, $) != None || !change(None, Starting)) return;
    thread_of_heap($) = 1;
    state.store(Running, orders.started, $);
  }
  void stop_own() {
    if (state.load(mo_relaxed, $) != Running || !change(Running, Stopping)) return;
    RL_ASSERT(thread_of_heap($) == 1);
    ++stops;
    state.store(None, mo_release, $);
  }
  void end() {
    if (orders.counts_under_lock) registry_lock.lock($);
    const bool is_last = --live == 0;
    if (orders.counts_under_lock) registry_lock.unlock($);
    if (is_last) stop_own();
  }

  void thread(unsigned number) {
    if (number == 0) start();
    if (number == 2) return stop_own();
    end();
  }
  void after() { RL_ASSERT(stops == 1); }
};

}  // namespace

int main() {
  holds<Background<Orders{}, false>>("the last thread ends it");
  holds<Background<Orders{}, true>>("the last thread ends it, or who needs room");
  is_rejected<Background<Orders{.counts_under_lock = false}, false>>("threads are counted without a lock", assertion);
  is_rejected<Background<Orders{.started = mo_relaxed}, true>>("that it runs is said relaxed", race);
  is_rejected<Background<Orders{.change = mo_release}, true>>("who ends it does not acquire", race);
  return outcome();
}
