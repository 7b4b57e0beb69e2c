// What is published once: the heap's start (cache::start in heap/thread_life.cpp), the list of all caches
// (registry.all, cache::first), the profile's tables (profile::start), hooks of the arena (arena_hooks). Two threads
// need it at once; one makes it.
//
// Must hold: it is made once, and whoever finds it there sees all of it, by plain reads.
#include "model.hpp"

namespace {

using namespace model;

enum StartState : unsigned { NotStarted, Starting, Started };

struct Orders {
  memory_order publish = mo_release;
  memory_order find = mo_acquire;
  memory_order find_starting = mo_acquire;  // of the exchange that fails
};

template <Orders orders>
struct Start : rl::test_suite<Start<orders>, 2> {
  atomic<unsigned> start_state{NotStarted};
  var<unsigned> region_base;
  unsigned starts = 0;

  Start() { region_base($) = 0; }

  bool start() {
    if (start_state.load(orders.find, $) == Started) return true;
    unsigned seen = NotStarted;
    if (!start_state.compare_exchange_strong(seen, Starting, mo_acquire, $, orders.find_starting, $))
      return seen == Started;  // else it waits and tries again
    ++starts;
    region_base($) = 1;
    start_state.store(Started, orders.publish, $);
    return true;
  }

  void thread(unsigned) {
    for (unsigned tries = 0; tries < 2; ++tries)
      if (start()) RL_ASSERT(region_base($) == 1);
  }
  void after() { RL_ASSERT(starts == 1); }
};

struct ListOrders {
  memory_order publish = mo_release;  // registry.all, under the registry's lock
  memory_order first = mo_acquire;
};

// Two threads get a cache; the third goes through all there are.
template <ListOrders orders>
struct Caches : rl::test_suite<Caches<orders>, 3> {
  static constexpr unsigned none = 0;
  atomic<unsigned> all{none};
  var<unsigned> next_cache[3], attached[3];
  rl::mutex registry_lock;

  void create(unsigned cache) {
    registry_lock.lock($);
    attached[cache]($) = 1;
    next_cache[cache]($) = all.load(mo_relaxed, $);
    all.store(cache, orders.publish, $);
    registry_lock.unlock($);
  }

  void thread(unsigned number) {
    if (number != 0) return create(number);
    for (unsigned cache = all.load(orders.first, $); cache != none; cache = next_cache[cache]($))
      RL_ASSERT(attached[cache]($) == 1);
  }
};

}  // namespace

int main() {
  holds<Start<Orders{}>>("the heap starts once, and is seen whole");
  is_rejected<Start<Orders{.publish = mo_relaxed}>>("it is published relaxed", race);
  is_rejected<Start<Orders{.find = mo_relaxed}>>("it is found relaxed", race);
  is_rejected<Start<Orders{.find_starting = mo_relaxed}>>("it is found relaxed by who would start it", race);
  holds<Caches<ListOrders{}>>("the list of caches is whole");
  is_rejected<Caches<ListOrders{.publish = mo_relaxed}>>("a cache is published relaxed", race);
  is_rejected<Caches<ListOrders{.first = mo_relaxed}>>("the list is found relaxed", race);
  return outcome();
}
