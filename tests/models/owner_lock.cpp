// The heap's locks (ForkableMutex in base/mutex.hpp): lock and unlock, a plain store in the owner's lock; the fork that
// holds one without changing anything (lock_for_fork, pass, a look or a fork inside of it) and the thread that takes it
// over (lock_contended). Waiting for the word to change is left out: who waits tries again.
//
// Must hold: what was done under the lock is seen by the next who has it; also what a fork did before it let the lock
// be taken over; and what a lock keeps for itself (passed_, depth_, firm_from_) is written by its holder alone, so that
// it is free in the end. Were a fork inside of a fork counted while the lock is idle, whoever takes it over and forks
// sets the count to 0 in between, and the lock would stay held, by a snapshot for ever.
#include "model.hpp"

namespace {

using namespace model;

struct Orders {
  memory_order take = mo_acquire;
  memory_order give = mo_release;
  memory_order let_take_over = mo_release;  // fetch_or in lock_idle
  bool holds_to_count = true;               // forks and looks inside of another
};

constexpr unsigned idle = 2, firm = 4, token_of[] = {8, 16, 24};

template <Orders orders>
class Lock {
 public:
  Lock() { passed($) = depth($) = firm_from($) = 0; }

  bool take_from(unsigned seen, unsigned token) {
    return state.compare_exchange_strong(seen, token, orders.take, $, mo_relaxed, $);
  }
  bool can_be_taken_over(unsigned seen) { return (seen & (idle | firm)) == idle; }
  bool is_own_idle(unsigned seen, unsigned token) { return (seen & ~firm) == (token | idle); }

  // False where another thread has it, who waits for no fork.
  bool lock_or_take_over(unsigned token) {
    const unsigned seen = state.load(mo_relaxed, $);
    return (seen == 0 || can_be_taken_over(seen)) && take_from(seen, token);
  }
  void unlock(unsigned token) { state.store(word_after(token), orders.give, $); }

  bool pass(unsigned token) {
    unsigned seen = state.load(mo_relaxed, $);
    if (!is_own_idle(seen, token) || !take_from(seen, seen & ~idle)) return false;
    passed($) = 1;
    return true;
  }

  // False where another thread has it.
  bool lock_idle(unsigned token, unsigned bits) {
    if (!orders.holds_to_count) return lock_idle_unheld(token, bits);
    if (pass(token)) {
      depth($) = depth($) + 1;
      if ((bits & ~state.load(mo_relaxed, $)) != 0 && (bits & firm) != 0) firm_from($) = unsigned{depth($)};
      state.fetch_or(bits & firm, mo_relaxed, $);
      unlock(token);
      return true;
    }
    if (!take_from(0, token)) return false;
    depth($) = firm_from($) = 0;
    state.fetch_or(bits, orders.let_take_over, $);
    return true;
  }
  void unlock_idle(unsigned token) {
    if (!orders.holds_to_count) return unlock_idle_unheld(token);
    if (!pass(token)) return;
    passed($) = 0;
    if (unsigned{depth($)} == 0) return state.store(0, orders.give, $);
    unsigned left = state.load(mo_relaxed, $) | idle;
    if (unsigned{firm_from($)} == unsigned{depth($)}) {
      left &= ~firm;
      firm_from($) = 0;
    }
    depth($) = depth($) - 1;
    state.store(left, orders.give, $);
  }

  atomic<unsigned> state{0};

 private:
  unsigned word_after(unsigned) {
    if (unsigned{passed($)} == 0) return 0;
    passed($) = 0;
    return state.load(mo_relaxed, $) | idle;
  }

  // Counts while another thread may take the lock over.
  bool lock_idle_unheld(unsigned token, unsigned bits) {
    unsigned seen = state.load(mo_relaxed, $);
    if (is_own_idle(seen, token) && state.compare_exchange_strong(seen, seen | bits, mo_acq_rel, $, mo_relaxed, $)) {
      depth($) = depth($) + 1;
      return true;
    }
    if (!take_from(0, token)) return false;
    depth($) = firm_from($) = 0;
    state.fetch_or(bits, orders.let_take_over, $);
    return true;
  }
  void unlock_idle_unheld(unsigned token) {
    unsigned seen = state.load(mo_relaxed, $);
    if (!is_own_idle(seen, token)) return;
    const bool inner = unsigned{depth($)} != 0;
    if (!state.compare_exchange_strong(seen, inner ? seen : 0, orders.give, $, mo_relaxed, $)) return;
    if (inner) depth($) = depth($) - 1;
  }

  var<unsigned> passed, depth, firm_from;
};

// Three threads change something, if they get the lock.
template <Orders orders>
struct Plain : rl::test_suite<Plain<orders>, 3> {
  Lock<orders> lock;
  var<unsigned> value;
  unsigned changes = 0;

  Plain() { value($) = 0; }
  void thread(unsigned number) {
    if (!lock.lock_or_take_over(token_of[number])) return;
    value($) = value($) + 1;
    ++changes;
    lock.unlock(token_of[number]);
  }
  void after() { RL_ASSERT(value($) == changes && lock.state.load(mo_relaxed, $) == 0); }
};

// Thread 0 forks, and a handler of another library changes something meanwhile, or another fork or a look comes inside
// of it; thread 1 takes the lock over, or waits for nothing, and then forks or looks itself.
enum class Inside { Change, Fork, Look };
template <Orders orders, Inside inside>
struct Fork : rl::test_suite<Fork<orders, inside>, 2> {
  Lock<orders> lock;
  var<unsigned> value;

  Fork() { value($) = 0; }

  void change() { value($) = value($) + 1; }

  void thread(unsigned number) {
    const unsigned token = token_of[number];
    if (number == 1) {
      if (lock.lock_or_take_over(token)) {
        change();
        lock.unlock(token);
      }
      if (lock.lock_idle(token, idle | firm)) lock.unlock_idle(token);
      return;
    }
    if (lock.take_from(0, token)) {
      change();
      lock.unlock(token);
    }
    if (!lock.lock_idle(token, idle)) return;
    if (inside == Inside::Change && lock.pass(token)) {
      change();
      lock.unlock(token);
    }
    if (inside != Inside::Change && lock.lock_idle(token, inside == Inside::Look ? idle | firm : idle))
      lock.unlock_idle(token);
    lock.unlock_idle(token);
  }

  void after() { RL_ASSERT(lock.state.load(mo_relaxed, $) == 0); }
};

}  // namespace

int main() {
  holds<Plain<Orders{}>>("what is done under the lock is seen", with_switches(4));
  is_rejected<Plain<Orders{.take = mo_relaxed}>>("it is taken relaxed", race, with_switches(4));
  is_rejected<Plain<Orders{.give = mo_relaxed}>>("it is given back relaxed", race, with_switches(4));
  holds<Fork<Orders{}, Inside::Change>>("a fork passes its own lock, or it is taken over", with_switches(4));
  holds<Fork<Orders{}, Inside::Fork>>("a fork inside of a fork", with_switches(4));
  holds<Fork<Orders{}, Inside::Look>>("a look inside of a fork", with_switches(4));
  is_rejected<Fork<Orders{.let_take_over = mo_relaxed}, Inside::Change>>("a fork lets its lock be taken relaxed", race,
                                                                         with_switches(4));
  is_rejected<Fork<Orders{.holds_to_count = false}, Inside::Fork>>("a fork inside counts while the lock is idle", race,
                                                                   with_switches(4));
  return outcome();
}
