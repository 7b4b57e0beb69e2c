// Stacks of things that nobody uses, linked by a word of their own. Taken as a whole: spans and records that signal
// handlers leave (`deferred` in pages/region.cpp and guarded/pool.cpp, `waiting` in profile/profile.cpp) and lost spans
// (pages/lost_spans.cpp). Taken one by one: retained spans (pages/quarantine.cpp), with a number that each change
// counts up; notes of orphans (heap/orphan_index.cpp), taken under a lock.
//
// Must hold: who takes a thing sees what was done to it before, nothing is taken twice, and nothing is lost.
#include "model.hpp"

namespace {

using namespace model;

constexpr unsigned none = 0, things = 2;

struct Orders {
  memory_order push = mo_release;
  memory_order take = mo_acquire;
  bool counts = true;  // changes of the stack
};

template <typename Test>
struct Things : rl::test_suite<Test, 3> {
  var<unsigned> content[things + 1];
  unsigned taken[things + 1]{};
  bool is_held[things + 1]{};  // by the thread that took it

  Things() {
    for (auto& one : content)
      one($) = 0;
  }
  // The thing is the calling thread's.
  void use(unsigned thing) {
    RL_ASSERT(!is_held[thing]);
    is_held[thing] = true;
    content[thing]($) = content[thing]($) + 1;
    ++taken[thing];
  }
};

// Two threads leave something; the third takes all. The links are plain words.
template <Orders orders>
struct TakenAsAWhole : Things<TakenAsAWhole<orders>> {
  using Base = Things<TakenAsAWhole<orders>>;
  atomic<unsigned> head{none};
  var<unsigned> next[things + 1];

  void push(unsigned thing) {
    Base::content[thing]($) = 1;
    unsigned seen = head.load(mo_relaxed, $);
    do
      next[thing]($) = seen;
    while (!head.compare_exchange_weak(seen, thing, orders.push, $, mo_relaxed, $));
  }
  void take_all() {
    if (head.load(mo_relaxed, $) == none) return;
    for (unsigned thing = head.exchange(none, orders.take, $); thing != none; thing = next[thing]($))
      Base::use(thing);
  }

  void thread(unsigned number) { number == 0 ? take_all() : push(number); }
  void after() {
    take_all();
    RL_ASSERT(Base::taken[1] == 1 && Base::taken[2] == 1);
  }
};

// Two threads take, use and put again what a third has put; a thread that was stopped finds the same one on top again.
template <Orders orders>
struct TakenOneByOne : Things<TakenOneByOne<orders>> {
  using Base = Things<TakenOneByOne<orders>>;
  atomic<unsigned> stack{none};  // the uppermost, and 16 times a number
  atomic<unsigned> next[things + 1];

  TakenOneByOne() {
    for (auto& link : next)
      link.store(none, mo_relaxed, $);
  }

  unsigned changed_to(unsigned seen, unsigned thing) { return (orders.counts ? (seen / 16 + 1) * 16 : 0) + thing; }

  void put(unsigned thing) {
    Base::is_held[thing] = false;
    unsigned seen = stack.load(mo_relaxed, $);
    do
      next[thing].store(seen % 16, mo_relaxed, $);
    while (!stack.compare_exchange_strong(seen, changed_to(seen, thing), orders.push, $, mo_relaxed, $));
  }
  unsigned take() {
    unsigned seen = stack.load(orders.take, $);
    while (seen % 16 != none) {
      const unsigned below = next[seen % 16].load(mo_relaxed, $);
      if (!stack.compare_exchange_strong(seen, changed_to(seen, below), orders.take, $, orders.take, $)) continue;
      Base::use(seen % 16);
      return seen % 16;
    }
    return none;
  }

  void before() {
    put(1);
    put(2);
  }
  void thread(unsigned number) {
    if (number == 0) {
      (void)take();
    } else if (number == 1) {
      const unsigned first = take();
      (void)take();
      if (first != none) put(first);
    }
  }
  void after() {
    bool is_there[things + 1]{};
    for (unsigned thing = stack.load(mo_relaxed, $) % 16; thing != none; thing = next[thing].load(mo_relaxed, $))
      is_there[thing] = true;
    for (unsigned thing = 1; thing <= things; ++thing)
      RL_ASSERT(is_there[thing] != Base::is_held[thing]);
  }
};

}  // namespace

int main() {
  holds<TakenAsAWhole<Orders{}>>("a stack that is taken as a whole", with_switches(4));
  is_rejected<TakenAsAWhole<Orders{.push = mo_relaxed}>>("it is pushed relaxed", race, with_switches(4));
  is_rejected<TakenAsAWhole<Orders{.take = mo_relaxed}>>("it is taken relaxed", race, with_switches(4));
  holds<TakenOneByOne<Orders{}>>("a stack with a number of changes", with_switches(4));
  is_rejected<TakenOneByOne<Orders{.counts = false}>>("nobody counts the changes", assertion, with_switches(4));
  is_rejected<TakenOneByOne<Orders{.take = mo_relaxed}>>("one is taken relaxed", race, with_switches(4));
  is_rejected<TakenOneByOne<Orders{.push = mo_relaxed}>>("it is put relaxed", race, with_switches(4));
  return outcome();
}
