// sparse::next_due and Vacancy::due_ms (heap/sparse.cpp, heap/upkeep.cpp): when a look at a cache is due by time.
// set_due and expect leave word; claim_due takes the word away and look_at_due leaves the earliest time that it has
// found in the caches.
//
// Must hold: after all that next_due is no later than any cache's own time. Whoever finds next_due early enough leaves
// it to who takes it away, who must see the cache's time then: each side writes one of the two and reads the other.
#include "model.hpp"

namespace {

using namespace model;

constexpr unsigned never = 100, now = 10, early = 5, late = 20;

struct Orders {
  memory_order store_due = mo_seq_cst;  // set_due
  memory_order read_due = mo_seq_cst;   // sparse::due
  memory_order expect = mo_seq_cst;     // the load of next_due in expect
  memory_order claim = mo_seq_cst;      // the exchange in claim_due
};

template <Orders orders>
struct Due : rl::test_suite<Due<orders>, 3> {
  atomic<unsigned> next_due{early};  // of a cache that has been looked at since
  atomic<unsigned> due_ms[2];

  Due() {
    for (auto& due : due_ms)
      due.store(never, mo_relaxed, $);
  }

  void expect(unsigned ms) {
    unsigned seen = next_due.load(orders.expect, $);
    while (ms < seen && !next_due.compare_exchange_strong(seen, ms, mo_seq_cst, $)) {
    }
  }

  void thread(unsigned number) {
    if (number != 0) {  // set_due
      due_ms[number - 1].store(late + number, orders.store_due, $);
      return expect(late + number);
    }
    unsigned seen = next_due.load(mo_relaxed, $);  // claim_due
    if (seen > now || !next_due.compare_exchange_strong(seen, never, orders.claim, $)) return;
    unsigned next = never;  // look_at_due
    for (auto& due : due_ms) {
      const unsigned ms = due.load(orders.read_due, $);
      if (ms < next) next = ms;
    }
    if (next != never) expect(next);
  }

  void after() {
    for (auto& due : due_ms)
      RL_ASSERT(next_due.load(mo_relaxed, $) <= due.load(mo_relaxed, $));
  }
};

}  // namespace

int main() {
  holds<Due<Orders{}>>("next_due is no later than what a cache says", with_switches(3));
  is_rejected<Due<Orders{.store_due = mo_release}>>("a cache's time is released", assertion);
  is_rejected<Due<Orders{.read_due = mo_acquire}>>("a cache's time is acquired", assertion);
  is_rejected<Due<Orders{.expect = mo_acquire}>>("expect acquires next_due", assertion);
  is_rejected<Due<Orders{.claim = mo_acq_rel}>>("next_due is taken by acquire and release", assertion);
  return outcome();
}
