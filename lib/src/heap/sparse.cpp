// See sparse.hpp.
#include "heap/sparse.hpp"

#include "base/options.hpp"
#include "heap/slab.hpp"
#include "os/memory.hpp"
#include "pages/region.hpp"

namespace sluice::sparse {
namespace {

constexpr size_t least_step = size_t{1} << 20;           // bytes freed between two looks, and worth giving back…
constexpr size_t least_step_at_once = size_t{64} << 10;  // …with SLUICE_PURGE_DELAY=0, or such a part of the slabs'…
constexpr size_t part_at_once = 32;
constexpr size_t worth_at_once = size_t{4} << 20;   // …and worth it before the purge delay is over
constexpr size_t part_worth = 64;                   // of the slabs' bytes, at least
constexpr size_t kept_at_first = size_t{64} << 20;  // vacant bytes that stay until then, as of free spans
constexpr size_t sparse = 2;                        // a slab's free bytes to those in use: most is free…
constexpr size_t shrunk = 16;                       // …or hardly anything is left
constexpr uint64_t long_ago = 8;                    // purge delays
constexpr uint64_t pause_part = 8;                  // of a purge delay between two counts at least…
constexpr size_t slabs_per_ms = 64;                 // …and a millisecond for so many slabs, 20 to 50 times…
constexpr unsigned most_doublings = 6;              // …what it takes; doubled so often after fruitless ones
// What is done for a portion of a walk, in units of some 30 ns: little more than a millisecond.
constexpr size_t portion = 40'000;
constexpr size_t least_portion = portion / 8;  // where somebody waits for the lock
constexpr size_t cost_of_step = 1;             // to the next slab…
constexpr size_t cost_of_look = 8;             // …at its bitmap…
constexpr size_t cost_of_page = 16;            // …to drop a page…
constexpr size_t cost_of_call = 32;            // …and for each call of the system

constexpr size_t greater(size_t a, size_t b) noexcept {
  return a > b ? a : b;
}
constexpr size_t lesser(size_t a, size_t b) noexcept {
  return a < b ? a : b;
}

size_t slab_bytes(const Vacancy& v) noexcept {
  return v.slab_units * unit_size;
}
size_t used_bytes(const Vacancy& v) noexcept {
  return slab_bytes(v) - v.tail_bytes - v.free_bytes;
}

size_t step_at_once(const Vacancy& v) noexcept {
  return greater(slab_bytes(v) / part_at_once, least_step_at_once);
}
bool goes_at_once() noexcept {
  return options.purge_delay == 0 || options.retain == 0;
}

// What went for nothing is kept next time, until that is long ago.
uint64_t forgets_at(const Vacancy& v) noexcept {
  return v.missed_ms + long_ago * options.purge_delay;
}
size_t missed_lately(Vacancy& v, uint64_t now) noexcept {
  while (v.missed != 0 && now >= forgets_at(v)) {
    v.missed /= 2;
    v.missed_ms = forgets_at(v);
  }
  return lesser(v.missed, slab_bytes(v));
}

// How much must be vacant so that it goes, in bytes.
struct Terms {
  size_t worth;   // in memory, or it is not worth it…
  size_t missed;  // …and more than twice this
  size_t grace;   // what is absent included
  bool met_by(size_t present, size_t absent) const noexcept {
    return present >= worth && present / 2 >= missed && present + absent >= grace;
  }
};
constexpr Terms no_terms{SIZE_MAX, 0, 0};

// Whether the options or the program say how much stays, whatever is in use.
bool is_told() noexcept {
  return goes_at_once() || region::free_bound() != region::no_bound;
}

// What is worth it whatever its age, and when it is old.
size_t worth_of_any(const Vacancy& v) noexcept {
  return greater(greater(worth_at_once, slab_bytes(v) / part_worth), used_bytes(v) / 3);
}
size_t worth_of_old(const Vacancy& v) noexcept {
  return greater(greater(least_step, slab_bytes(v) / part_worth), used_bytes(v) / 4);
}

Terms terms_at(Vacancy& v, uint64_t now) noexcept {
  if (goes_at_once()) return {step_at_once(v), 0, 0};
  const size_t used = used_bytes(v);
  const size_t missed = missed_lately(v, now);
  const size_t worth = worth_of_any(v);
  if (is_told()) return {greater(worth, region::free_bound()), missed, 0};
  if (v.sparse_ms == 0) return no_terms;
  if (now >= v.sparse_ms + options.purge_delay) return {worth_of_old(v), missed, 0};
  return v.free_bytes >= shrunk * used ? Terms{worth, missed, lesser(kept_at_first, options.retain)} : no_terms;
}

// Takes note of whether most of the slabs is free.
void note_use(Vacancy& v, uint64_t now) noexcept {
  if (v.free_bytes < sparse * used_bytes(v)) {
    if (v.sparse_ms != 0 && !is_told()) v.fruitless /= 2;  // a heap that goes to and fro is counted no more often
    v.sparse_ms = 0;
  } else if (v.sparse_ms == 0) {
    v.sparse_ms = greater(now, 1);
  }
  if (v.fruitless == 0) v.counted_free = lesser(v.counted_free, v.free_bytes);
}

// How long after a count the next may be, where nothing says that there is more to give back.
uint64_t pause(const Vacancy& v) noexcept {
  return greater(options.purge_delay / pause_part, v.slab_units / slabs_per_ms) << lesser(v.fruitless, most_doublings);
}

// Whether it is time to count the vacant pages: there may be enough of them, and there was a change since the last
// count.
bool is_time(Vacancy& v, uint64_t now) noexcept {
  const Terms terms = terms_at(v, now);
  if (!terms.met_by(v.free_bytes, 0)) return false;
  const size_t rise = v.fruitless == 0 ? greater(terms.worth / 2, least_step_at_once) : terms.worth;
  if (v.free_bytes < v.counted_free + rise && now - v.counted_ms < pause(v)) return false;
  v.counted_free = v.free_bytes;
  v.counted_ms = now;
  return true;
}

// When so many vacant bytes in memory go, if nothing changes but the time; 0: they do not.
uint64_t when_old(const Vacancy& v, size_t vacant, uint64_t now) noexcept {
  if (goes_at_once() || (!is_told() && v.sparse_ms == 0)) return 0;
  if (vacant < (is_told() ? greater(worth_of_any(v), region::free_bound()) : worth_of_old(v))) return 0;
  uint64_t ms = greater(is_told() ? now : v.sparse_ms + options.purge_delay, v.counted_ms + pause(v));
  uint64_t forgotten_ms = v.missed_ms;
  for (size_t missed = v.missed; lesser(missed, slab_bytes(v)) > vacant / 2; missed /= 2)
    forgotten_ms += long_ago * options.purge_delay;
  if (forgotten_ms != v.missed_ms) ms = greater(ms, forgotten_ms);
  return greater(ms, now + 1);
}

// Leaves word when the next look is due.
void set_due(Vacancy& v, uint64_t ms) noexcept {
  v.due_ms.store(ms, std::memory_order_seq_cst);  // see expect
  if (ms != 0) expect(ms);
}

// Bytes that may be freed until the next look: not much more than until hardly anything is left.
ptrdiff_t step(const Vacancy& v) noexcept {
  const size_t used = used_bytes(v);
  if (goes_at_once()) return static_cast<ptrdiff_t>(step_at_once(v));
  size_t bytes = greater(used / 8, least_step);
  const size_t left = slab_bytes(v) / (shrunk + 1);
  if (used > left) bytes = lesser(bytes, greater(used - left, least_step_at_once));
  return static_cast<ptrdiff_t>(bytes);
}

void start(Vacancy& v, Walk walk) noexcept {
  v.walk = walk;
  v.walked_class = 0;
  v.next = unit_index_none;
  v.until_look.store(-1, std::memory_order_relaxed);
}

void end(Vacancy& v) noexcept {
  if (v.is_asked) v.left = v.keep != 0 ? v.present : 0;
  v.walk = Walk::None;
  v.until_look.store(step(v), std::memory_order_relaxed);
}

// The slab that the walk comes to next, of those with blocks on pages in memory; null at the end.
Unit* next_slab(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock) {
  Vacancy& v = c.vacancy;
  while (v.next == unit_index_none || region::unit_at(v.next)->slab.at_end) {
    if (v.walked_class + 1u == size_class_count) return nullptr;
    v.next = c.partial[++v.walked_class];
  }
  Unit* const s = region::unit_at(v.next);
  v.next = s->slab.next;
  return s;
}

// The walk has come to its end. Where the vacant pages were counted, either they go, or the next count is put off.
void finish(Vacancy& v) noexcept {
  if (v.walk == Walk::Counting) {
    if (v.is_asked ? v.present > v.keep : terms_at(v, os::clock_ms()).met_by(v.present, v.absent_bytes))
      return start(v, Walk::Dropping);
    if (!v.is_asked && v.fruitless < most_doublings) ++v.fruitless;
  }
  end(v);
}

// What a walk does with a slab. Returns: what it cost.
size_t count(Vacancy& v, Unit* s) noexcept {
  const size_t present = vacant::count_present(s, slab::free_bits(s));
  v.present += present;
  ++v.slabs_walked;
  if (present == 0 && !s->slab.keeps_vacant) s->slab.may_be_vacant = false;
  return cost_of_look;
}

size_t drop(ThreadCache& c, Unit* s, size_t* bytes) noexcept SLUICE_REQUIRES(c.lock) {
  Vacancy& v = c.vacancy;
  if (s->slab.keeps_vacant && !v.is_asked) return 0;
  ++v.slabs_walked;
  const vacant::Dropped dropped = vacant::drop(c, s, slab::free_bits(s));
  slab::place(c, s);
  if (s->slab.keeps_vacant && v.is_asked) v.freed_since = greater(v.freed_since, 1);  // it may be asked again
  *bytes += dropped.bytes;
  v.present -= lesser(v.present, dropped.bytes);
  return cost_of_look + cost_of_page * dropped.bytes / os::page_size() + cost_of_call * dropped.calls;
}

size_t place(ThreadCache& c, Unit* s) noexcept SLUICE_REQUIRES(c.lock) {
  slab::place(c, s);
  return s->slab.has_absent ? cost_of_look : 0;
}

}  // namespace

constinit std::atomic<uint64_t> next_due{never};

// Sequentially consistent, here and below: whoever takes next_due away either finds what the caller has stored in the
// cache before, or leaves `never` here to be found.
void expect(uint64_t ms) noexcept {
  if (!vacant::gives_back) return;
  uint64_t seen = next_due.load(std::memory_order_seq_cst);
  while (ms < seen && !next_due.compare_exchange_weak(seen, ms, std::memory_order_seq_cst)) {
  }
  if (region::rest::word.load(std::memory_order_seq_cst) == region::rest::asleep) region::rest::wake();
}

bool claim_due(uint64_t now) noexcept {
  uint64_t seen = next_due.load(std::memory_order_relaxed);
  while (seen <= now)
    if (next_due.compare_exchange_weak(seen, never, std::memory_order_seq_cst)) return true;
  return false;
}

void begin_anew(ThreadCache& c) noexcept {
  Vacancy& v = c.vacancy;
  if (v.sparse_ms == 0) return;
  v.sparse_ms = 0;
  set_due(v, os::clock_ms() + options.purge_delay);
}

void look(ThreadCache& c) noexcept {
  Vacancy& v = c.vacancy;
  const uint64_t now = os::clock_ms();
  if (v.walk == Walk::None) {
    v.until_look.store(step(v), std::memory_order_relaxed);
    if (region::keeps_all() || options.huge_pages) return set_due(v, 0);
    note_use(v, now);
    if (!is_time(v, now)) return set_due(v, when_old(v, v.free_bytes - v.absent_bytes, now));
    if (os::is_memory_locked()) return set_due(v, 0);
    v.is_asked = false;
    v.keep = v.present = 0;
    start(v, Walk::Counting);
  }
  (void)go_on(c);
  if (v.walk != Walk::None)
    set_due(v, v.is_asked ? now + options.purge_delay : now);
  else
    set_due(v, when_old(v, lesser(v.present, v.free_bytes - v.absent_bytes), now));
}

bool begin(ThreadCache& c, size_t keep, size_t freed) noexcept {
  if (!vacant::gives_back) return false;
  Vacancy& v = c.vacancy;
  const size_t most = v.left + v.freed_since;  // vacant bytes in memory
  if (keep == 0 ? most <= freed : most <= keep && v.freed_since <= little(c)) return false;
  if (os::is_memory_locked()) return false;
  v.left = most;
  v.freed_since = 0;
  v.is_asked = true;
  v.keep = keep;
  v.present = keep == 0 ? SIZE_MAX : 0;
  start(v, keep == 0 ? Walk::Dropping : Walk::Counting);
  return true;
}

size_t go_on(ThreadCache& c) noexcept {
  Vacancy& v = c.vacancy;
  ++v.portions;
  size_t bytes = 0;
  for (size_t work = 0; v.walk != Walk::None && work < portion; work += cost_of_step) {
    Unit* const s = v.present > v.keep || v.walk == Walk::Counting ? next_slab(c) : nullptr;
    if (s == nullptr)
      finish(v);
    else if (s->slab.may_be_vacant)
      work += v.walk == Walk::Counting ? count(v, s) : drop(c, s, &bytes);
    else if (v.walk == Walk::Dropping && !v.is_asked)
      work += place(c, s);
    if (work >= least_portion && c.lock.is_wanted()) break;
  }
  if (bytes != 0) {
    v.gave_back_ms = os::clock_ms();
    v.fruitless = 0;
    if (v.sparse_ms != 0) v.sparse_ms = v.gave_back_ms;  // the next are to get as old
  }
  // Who asked for a walk comes back for the next portion; where it cannot, the owner goes on when it has freed much.
  if (is_asked(c)) v.until_look.store(kept_at_first, std::memory_order_relaxed);
  return bytes;
}

size_t little(const ThreadCache& c) noexcept {
  return slab_bytes(c.vacancy) / part_worth;
}

}  // namespace sluice::sparse
