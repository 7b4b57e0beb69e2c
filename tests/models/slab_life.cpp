// A slab that goes while a thread announces a remote free into it, and the next slab in its unit: queue_on_owner and
// announce on the late thread, create, destroy and the frees into the new slab on the others (heap/slab.cpp,
// heap/announce.cpp, heap/remote_frees.cpp). Also what free() reads without a lock: the class byte and the descriptor.
//
// Must hold: bits of the new slab are seen by an owner, or the slab stands in a pending stack; a slab stands in one
// stack at most, and then its flag is set; and nothing of a slab but owner, queued and pending_next is touched once the
// bits of its last block are set.
#include "model.hpp"

namespace {

using namespace model;

struct Orders {
  memory_order own = mo_release;  // create's store of the owner
  memory_order find_owner = mo_acquire;
  memory_order let_go = mo_acq_rel;  // of the flag in queue_on_owner
  memory_order announce = mo_acq_rel;
  bool looks_again = true;           // after letting go of the flag
  bool length_is_read_first = true;  // before the bits are set
};

// Thread 0 has a block of the first slab, whose owner is 1. Thread 1 owns that slab and the next one in its unit, as
// owner 2; it passes a block of it to thread 2.
template <Orders orders>
struct SlabLife : rl::test_suite<SlabLife<orders>, 3> {
  atomic<unsigned> owner{1};
  atomic<bool> queued{false};
  atomic<unsigned> remote{0};
  atomic<unsigned> pending[3];  // how often the slab stands in the stack of the owner
  var<unsigned> class_byte, units;
  var<unsigned> attached[3];   // of the owners' caches, of which the second is new
  atomic<unsigned> passed{0};  // the program's own

  SlabLife() {
    for (auto& stack : pending)
      stack.store(0, mo_relaxed, $);
    class_byte($) = 1;
    units($) = 1;
    attached[1]($) = 1;
  }

  void announce() {
    if (queued.exchange(true, orders.announce, $)) return;
    for (;;) {
      if (const unsigned found = owner.load(orders.find_owner, $); found != 0) {
        RL_ASSERT(attached[found]($) == 1);
        pending[found].fetch_add(1, mo_seq_cst, $);
        return;
      }
      queued.exchange(false, orders.let_go, $);
      if (!orders.looks_again) return;
      if (owner.load(orders.find_owner, $) == 0 || queued.exchange(true, orders.announce, $)) return;
    }
  }

  void free(unsigned expected_class) {
    RL_ASSERT(class_byte($) == expected_class);
    unsigned length = 0;
    if (orders.length_is_read_first) length = units($);
    remote.fetch_or(1, mo_release, $);
    if (!orders.length_is_read_first) length = units($);
    RL_ASSERT(length != 0);
    announce();
  }

  void thread(unsigned number) {
    if (number == 0) return free(1);
    if (number == 1) {
      if (remote.exchange(0, mo_acquire, $) == 0) return;  // collected: the slab is empty
      owner.store(0, mo_release, $);                       // destroy; the region's lock, which orders more, is left out
      class_byte($) = 0;
      units($) = 2;
      attached[2]($) = 1;
      owner.store(2, orders.own, $);  // create
      class_byte($) = 2;
      return passed.store(1, mo_release, $);
    }
    if (passed.load(mo_acquire, $) == 1) free(2);
  }

  void after() {
    const unsigned stacks = pending[1].load(mo_relaxed, $) + pending[2].load(mo_relaxed, $);
    RL_ASSERT(stacks == (queued.load(mo_relaxed, $) ? 1 : 0));
    RL_ASSERT(remote.load(mo_relaxed, $) == 0 || stacks == 1);
  }
};

}  // namespace

int main() {
  holds<SlabLife<Orders{}>>("a free into the slab that comes next is seen", with_switches(4));
  is_rejected<SlabLife<Orders{.looks_again = false}>>("nobody looks again after letting go of the flag", assertion,
                                                      with_switches(4));
  is_rejected<SlabLife<Orders{.own = mo_relaxed}>>("the owner is set relaxed", race, with_switches(4));
  is_rejected<SlabLife<Orders{.find_owner = mo_relaxed}>>("the owner is found relaxed", race, with_switches(4));
  is_rejected<SlabLife<Orders{.let_go = mo_release}>>("the flag is let go without acquire", assertion,
                                                      with_switches(4));
  is_rejected<SlabLife<Orders{.announce = mo_acquire}>>("the flag is set without release", assertion, with_switches(4));
  is_rejected<SlabLife<Orders{.length_is_read_first = false}>>("the length is read behind the free", race,
                                                               with_switches(4));
  return outcome();
}
