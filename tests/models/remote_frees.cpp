// Remote frees: put_remote and announce on the threads that free (heap/slab.cpp, heap/announce.cpp), collect_pending on
// the owner's. `queued` is the slab's flag, `pending` the owner's stack, linked by `pending_next`.
//
// Must hold: bits that are set are collected, or their slab stands in the stack (the announcer finds it not queued, or
// the collector finds the bits); the stack leads to each slab whose flag is set; and what a thread did with a block
// before its free is done before the owner has the block again.
#include "model.hpp"

namespace {

using namespace model;

constexpr unsigned none = 0, slabs = 2, words = 3;  // of a bitmap, one block each

struct Orders {
  memory_order set_bits = mo_release;   // fetch_or in set_remote
  memory_order take_bits = mo_acquire;  // exchange in collect_pending
  memory_order announce = mo_acq_rel;   // exchange of `queued`
  memory_order collect = mo_acq_rel;    // likewise, in collect_pending
  memory_order push = mo_seq_cst;       // of push_pending
  memory_order take = mo_seq_cst;       // of collect_pending
  bool link_is_read_first = true;       // before the flag is given up
};

// `frees`: which slab each of the two other threads frees a block of, and which one after that.
template <Orders orders, unsigned first, unsigned second, unsigned third>
struct RemoteFrees : rl::test_suite<RemoteFrees<orders, first, second, third>, 3> {
  struct Slab {
    atomic<bool> queued{false};
    atomic<unsigned> pending_next{none};
    atomic<unsigned> remote[words];
    var<unsigned> blocks[words];  // what lies in them
  };
  Slab slab[slabs + 1];
  atomic<unsigned> pending{none};

  RemoteFrees() {
    for (Slab& s : slab) {
      for (auto& word : s.remote)
        word.store(0, mo_relaxed, $);
      for (auto& block : s.blocks)
        block($) = 0;
    }
  }

  void free(unsigned s, unsigned block) {
    slab[s].blocks[block]($) = 1;  // the program's last use
    slab[s].remote[block].fetch_or(1, orders.set_bits, $);
    if (slab[s].queued.exchange(true, orders.announce, $)) return;
    unsigned head = pending.load(mo_relaxed, $);
    do
      slab[s].pending_next.store(head, mo_relaxed, $);
    while (!pending.compare_exchange_strong(head, s, orders.push, $, mo_relaxed, $));
  }

  void collect() {
    unsigned index = pending.exchange(none, orders.take, $);
    while (index != none) {
      Slab& s = slab[index];
      if (orders.link_is_read_first) index = s.pending_next.load(mo_relaxed, $);
      s.queued.exchange(false, orders.collect, $);
      if (!orders.link_is_read_first) index = s.pending_next.load(mo_relaxed, $);
      for (unsigned i = 0; i < words; ++i) {
        if (s.remote[i].load(mo_relaxed, $) == 0) continue;
        if (s.remote[i].exchange(0, orders.take_bits, $) != 0) s.blocks[i]($) = 0;  // it serves again
      }
    }
  }

  void thread(unsigned number) {
    if (number == 0) return collect();
    free(number == 1 ? first : second, number);
    if (number == 1 && third != none) free(third, 0);
  }

  void after() {
    bool in_stack[slabs + 1]{};
    for (unsigned i = pending.load(mo_relaxed, $); i != none; i = slab[i].pending_next.load(mo_relaxed, $)) {
      RL_ASSERT(!in_stack[i]);
      in_stack[i] = true;
    }
    for (unsigned i = 1; i <= slabs; ++i) {
      RL_ASSERT(slab[i].queued.load(mo_relaxed, $) == in_stack[i]);
      for (auto& word : slab[i].remote)
        RL_ASSERT(word.load(mo_relaxed, $) == 0 || in_stack[i]);
    }
  }
};

template <Orders orders>
using OneSlab = RemoteFrees<orders, 1, 1, none>;
template <Orders orders>
using TwoSlabs = RemoteFrees<orders, 1, 2, 2>;
template <Orders orders>
using AgainAndAgain = RemoteFrees<orders, 1, 2, 1>;

}  // namespace

int main() {
  holds<OneSlab<Orders{}>>("two threads free into a slab", with_switches(3));
  holds<TwoSlabs<Orders{}>>("two threads free into two slabs", with_switches(2));
  holds<AgainAndAgain<Orders{}>>("a slab is queued again while the stack is taken", with_switches(3));
  is_rejected<OneSlab<Orders{.set_bits = mo_relaxed}>>("bits are set relaxed", race, with_switches(3));
  is_rejected<OneSlab<Orders{.take_bits = mo_relaxed}>>("bits are taken relaxed", race, with_switches(3));
  is_rejected<OneSlab<Orders{.announce = mo_relaxed}>>("the flag is set relaxed", assertion, with_switches(3));
  is_rejected<OneSlab<Orders{.announce = mo_acquire}>>("the flag is set without release", assertion, with_switches(3));
  is_rejected<OneSlab<Orders{.collect = mo_release}>>("the flag is given up without acquire", assertion,
                                                      with_switches(3));
  is_rejected<AgainAndAgain<Orders{.link_is_read_first = false}>>("the link is read behind the flag", assertion,
                                                                  with_switches(3));
  is_rejected<TwoSlabs<Orders{.push = mo_relaxed}>>("a slab is pushed relaxed", assertion, with_switches(3));
  is_rejected<TwoSlabs<Orders{.take = mo_relaxed}>>("the stack is taken relaxed", assertion, with_switches(3));
  return outcome();
}
