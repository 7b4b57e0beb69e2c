// Objects of a thread's stack arena that other threads free: free_elsewhere (arena/arena.cpp) on their side; the mark
// `freed_elsewhere`, and who takes it and looks at the headers (look_in_passing and give_back_orphaned in
// arena/chunk.cpp, by the thread or for one that has ended).
//
// Must hold: an object that was freed is seen by the look that follows the taking of the mark, or the mark stands; and
// what the other thread did with the object is done before the owner uses its place again. Who frees leaves the mark
// alone where it stands already, so that both sides write and then read what the other one writes. With release and
// acquire alone, also on x86: the other thread's store waits in its processor while it finds the mark of an earlier
// free; the owner takes that mark and finds the object live; the store comes, and nobody looks again.
//
// A header is one atomic here. There the other thread stores one byte of it and the owner loads four, which C++ has no
// order for, and x86 and Arm have: the load has the order of the byte's store.
#include "model.hpp"

namespace {

using namespace model;

enum State : unsigned { Live, FreedElsewhere };

struct Orders {
  memory_order free = mo_seq_cst;       // of the header's state in set_freed_elsewhere
  memory_order is_marked = mo_seq_cst;  // free_elsewhere
  memory_order take_mark = mo_seq_cst;
  memory_order read_header = mo_seq_cst;  // word_of_others
};

template <Orders orders>
struct ScopeFrees : rl::test_suite<ScopeFrees<orders>, 3> {
  atomic<unsigned> header[2];
  var<unsigned> object[2];
  atomic<bool> freed_elsewhere{true};  // an object that was freed before
  bool seen[2]{};

  ScopeFrees() {
    for (auto& one : header)
      one.store(Live, mo_relaxed, $);
    for (auto& one : object)
      one($) = 0;
  }

  void thread(unsigned number) {
    if (number != 0) {
      object[number - 1]($) = 1;  // the program's last use
      header[number - 1].store(FreedElsewhere, orders.free, $);
      if (!freed_elsewhere.load(orders.is_marked, $)) freed_elsewhere.store(true, mo_release, $);
      return;
    }
    if (!freed_elsewhere.exchange(false, orders.take_mark, $)) return;
    for (unsigned i = 0; i < 2; ++i) {
      if (header[i].load(orders.read_header, $) == Live) continue;
      object[i]($) = 2;  // another one, in its place
      seen[i] = true;
    }
  }

  void after() { RL_ASSERT((seen[0] && seen[1]) || freed_elsewhere.load(mo_relaxed, $)); }
};

}  // namespace

int main() {
  holds<ScopeFrees<Orders{}>>("an object freed elsewhere is seen, or the mark stands");
  is_rejected<ScopeFrees<Orders{.free = mo_release}>>("the object is freed by a release", assertion);
  is_rejected<ScopeFrees<Orders{.is_marked = mo_relaxed}>>("the mark is asked for relaxed", assertion);
  is_rejected<ScopeFrees<Orders{.take_mark = mo_acquire}>>("the mark is taken by an acquire", assertion);
  is_rejected<ScopeFrees<Orders{.read_header = mo_acquire}>>("the header is acquired", assertion);
  is_rejected<ScopeFrees<Orders{.free = mo_relaxed}>>("the object is freed relaxed", race);
  is_rejected<ScopeFrees<Orders{.read_header = mo_relaxed}>>("the header is read relaxed", race);
  return outcome();
}
