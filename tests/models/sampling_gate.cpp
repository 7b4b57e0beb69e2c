// All threads are asked whether they sample: ask_all on one side; draw_all and set_gate on the other, which opens the
// gate (heap/sampling.cpp, heap/gate.cpp). small_limit stands for the three limits.
//
// Must hold: a thread draws by the new rate, or its gate is shut in the end, so that its next call looks. The gate's
// stores are relaxed on both sides, since the fast paths read it: who asks sleeps for a millisecond and looks again.
// Until then the stores of a processor have reached the others, and a thread that was stopped in between reads anew.
#include "model.hpp"

namespace {

using namespace model;

enum Sampling : unsigned { NotSampling, IsSampling, AskedToLookAgain };
constexpr unsigned shut = 0, open = 1;

struct Orders {
  memory_order request = mo_acq_rel;  // ask_all
  memory_order draw = mo_acq_rel;     // draw_all
  bool looks_again = true;            // after the sleep
  bool finds_asked = true;            // the look at the end of set_gate
};

template <Orders orders>
struct SamplingGate : rl::test_suite<SamplingGate<orders>, 2> {
  atomic<unsigned> rate{0}, requests{0}, sampling{NotSampling}, small_limit{shut}, sleeps{0};
  bool sees_new_rate = false, has_slept = false, small_limit_is_written = false;

  // What is older than the sleep is there.
  unsigned read(atomic<unsigned>& word, bool latest) {
    return latest ? word.fetch_add(0, mo_relaxed, $) : word.load(mo_relaxed, $);
  }
  void ask() {
    sampling.store(AskedToLookAgain, mo_relaxed, $);
    small_limit.store(shut, mo_relaxed, $);
  }

  void thread(unsigned number) {
    if (number == 0) {  // ask_all
      rate.store(1, mo_relaxed, $);
      requests.fetch_add(1, orders.request, $);
      ask();
      sleeps.store(1, mo_relaxed, $);  // others go on meanwhile
      has_slept = true;
      const bool is_old = small_limit_is_written;
      if (orders.looks_again && read(sampling, true) == AskedToLookAgain && read(small_limit, is_old) != shut) ask();
      return;
    }
    sampling.store(IsSampling, mo_relaxed, $);  // draw_all
    requests.fetch_add(0, orders.draw, $);
    if (rate.load(mo_relaxed, $) != 0) {
      sees_new_rate = true;
      return;
    }
    unsigned is = IsSampling;
    sampling.compare_exchange_strong(is, NotSampling, mo_relaxed, $);
    small_limit.store(open, mo_relaxed, $);  // set_gate
    small_limit_is_written = true;
    if (orders.finds_asked && read(sampling, has_slept) == AskedToLookAgain) small_limit.store(shut, mo_relaxed, $);
  }

  void after() {
    RL_ASSERT(sees_new_rate || small_limit.load(mo_relaxed, $) == shut);
    RL_ASSERT(sees_new_rate || sampling.load(mo_relaxed, $) == AskedToLookAgain);
  }
};

}  // namespace

int main() {
  holds<SamplingGate<Orders{}>>("a thread draws by the new rate, or its gate is shut");
  is_rejected<SamplingGate<Orders{.looks_again = false}>>("nobody looks again", assertion);
  is_rejected<SamplingGate<Orders{.finds_asked = false}>>("set_gate does not look", assertion);
  is_rejected<SamplingGate<Orders{.request = mo_relaxed}>>("the request is relaxed", assertion);
  is_rejected<SamplingGate<Orders{.draw = mo_relaxed}>>("who draws reads the requests relaxed", assertion);
  return outcome();
}
