// What is queued on a thread that ends: push_orphan, let_go and look_after on its side, announce on the side of who
// frees (heap/thread_life.cpp, heap/announce.cpp), the note of orphans to look at (heap/orphan_index.cpp), and the
// search that takes it (look_after_noted). Also who else holds the orphan's lock meanwhile, and the thread that takes
// the cache over.
//
// Must hold: what is queued on an orphan is taken in, or the orphan is noted; what is queued on a cache with a thread
// is that thread's to find.
#include "model.hpp"

namespace {

using namespace model;

struct Orders {
  memory_order end = mo_seq_cst;         // `orphan` is set
  memory_order push = mo_seq_cst;        // push_pending
  memory_order is_orphan = mo_seq_cst;   // announce
  memory_order is_pending = mo_seq_cst;  // look_after
  memory_order note = mo_acq_rel;
  memory_order forget = mo_acq_rel;
};

template <Orders orders>
struct Cache {
  atomic<unsigned> lock{0};
  atomic<unsigned> pending{0};
  atomic<bool> orphan{false};
  atomic<bool> noted{false};
  atomic<bool> in_stack{false};  // of orphans to look at

  bool try_lock() {
    unsigned free = lock.load(mo_relaxed, $);
    return free == 0 && lock.compare_exchange_strong(free, 1, mo_acquire, $, mo_relaxed, $);
  }
  void collect() { pending.exchange(0, mo_seq_cst, $); }

  void look_after() {
    while (pending.load(orders.is_pending, $) != 0) {
      if (!try_lock()) {
        if (!noted.exchange(true, orders.note, $)) in_stack.store(true, mo_release, $);
        return;
      }
      collect();
      let_go();
    }
  }
  // unlock_before_reading: in order with the look at `pending` that follows, so that most is found here and now. What
  // is not is noted.
  void let_go() { lock.exchange(0, mo_seq_cst, $); }

  void announce() {
    pending.fetch_add(1, orders.push, $);
    if (orphan.load(orders.is_orphan, $)) look_after();
  }
  void end() {  // holds the lock
    orphan.store(true, orders.end, $);
    let_go();
    look_after();
  }
  void search() {
    if (!in_stack.exchange(false, mo_acquire, $)) return;
    noted.exchange(false, orders.forget, $);
    if (orphan.load(mo_relaxed, $)) look_after();
  }

  void nothing_is_lost() {
    RL_ASSERT(in_stack.load(mo_relaxed, $) == noted.load(mo_relaxed, $));
    RL_ASSERT(pending.load(mo_relaxed, $) == 0 || noted.load(mo_relaxed, $));
  }
};

// A thread ends while another one frees into its slab.
template <Orders orders>
struct End : rl::test_suite<End<orders>, 2> {
  Cache<orders> cache;

  void before() { cache.lock.store(1, mo_relaxed, $); }
  void thread(unsigned number) { number == 0 ? cache.end() : cache.announce(); }
  void after() { cache.nothing_is_lost(); }
};

// Two threads free into the slab of an orphan that a fork or a snapshot holds, which looks after nothing; one searches.
template <Orders orders>
struct Sought : rl::test_suite<Sought<orders>, 4> {
  Cache<orders> cache;

  void before() {
    cache.lock.store(1, mo_relaxed, $);
    cache.orphan.store(true, mo_relaxed, $);
    cache.pending.store(1, mo_relaxed, $);
    cache.noted.store(true, mo_relaxed, $);
    cache.in_stack.store(true, mo_relaxed, $);
  }
  void thread(unsigned number) {
    if (number == 0) return cache.lock.store(0, mo_release, $);
    if (number == 1) return cache.search();
    cache.announce();
  }
  void after() { cache.nothing_is_lost(); }
};

// The note orders what it says; sequential consistency of the rest, which is for the end of a thread, hides what it is
// for.
constexpr Orders noted_alone{.push = mo_acq_rel, .is_pending = mo_acquire};
constexpr Orders with(Orders orders, memory_order Orders::*relaxed) {
  orders.*relaxed = mo_relaxed;
  return orders;
}

}  // namespace

int main() {
  holds<End<Orders{}>>("what is queued while a thread ends");
  is_rejected<End<Orders{.end = mo_release}>>("the end is released", assertion);
  is_rejected<End<Orders{.push = mo_acq_rel}>>("a slab is queued by acquire and release", assertion);
  is_rejected<End<Orders{.is_orphan = mo_acquire}>>("announce acquires `orphan`", assertion);
  is_rejected<End<Orders{.is_pending = mo_acquire}>>("look_after acquires `pending`", assertion);
  holds<Sought<noted_alone>>("what is queued while somebody searches", with_switches(2));
  is_rejected<Sought<with(noted_alone, &Orders::note)>>("a note is made relaxed", assertion, with_switches(3));
  is_rejected<Sought<with(noted_alone, &Orders::forget)>>("a note is ended relaxed", assertion, with_switches(3));
  return outcome();
}
