// Exact counts that a snapshot reads while other threads go on: count_malloc and count_free of caches and of the totals
// (heap/counters.cpp), add_counts (stats/snapshot.cpp), which reads frees before mallocs.
//
// Must hold: no block seems to be freed that was never handed out, whichever thread frees it. Were frees counted
// relaxed, an Arm processor might show a thread's count of frees before its older count of mallocs, and what is live
// would be less than nothing.
#include "model.hpp"

namespace {

using namespace model;

struct Orders {
  memory_order count_free = mo_release;
  memory_order read_frees = mo_acquire;
};

// Thread 0 allocates two blocks and frees one; thread 1 frees the other; thread 2 takes a snapshot.
template <Orders orders>
struct Counters : rl::test_suite<Counters<orders>, 3> {
  struct Counts {
    atomic<unsigned> mallocs{0}, frees{0};
  };
  Counts of_thread[2];
  atomic<unsigned> passed{0};  // the program's own

  void add(atomic<unsigned>& count, memory_order order) { count.store(count.load(mo_relaxed, $) + 1, order, $); }

  void thread(unsigned number) {
    if (number == 0) {
      add(of_thread[0].mallocs, mo_relaxed);
      add(of_thread[0].mallocs, mo_relaxed);
      passed.store(1, mo_release, $);
      add(of_thread[0].frees, orders.count_free);
    } else if (number == 1) {
      if (passed.load(mo_acquire, $) != 0) add(of_thread[1].frees, orders.count_free);
    } else {
      unsigned frees = 0, mallocs = 0;
      for (Counts& counts : of_thread)
        frees += counts.frees.load(orders.read_frees, $);
      for (Counts& counts : of_thread)
        mallocs += counts.mallocs.load(mo_relaxed, $);
      RL_ASSERT(frees <= mallocs);
    }
  }
};

}  // namespace

int main() {
  holds<Counters<Orders{}>>("no more frees than mallocs", with_switches(4));
  is_rejected<Counters<Orders{.count_free = mo_relaxed}>>("frees are counted relaxed", assertion, with_switches(4));
  is_rejected<Counters<Orders{.read_frees = mo_relaxed}>>("frees are read relaxed", assertion, with_switches(4));
  return outcome();
}
