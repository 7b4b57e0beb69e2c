// See budget.hpp.
#include "heap/budget.hpp"

#include "base/options.hpp"
#include "heap/long_lists.hpp"
#include "heap/slab.hpp"
#include "os/memory.hpp"

namespace sluice::budget {

namespace {

constexpr size_t first_cap_bytes = 4096;   // what a list holds before it is first flushed, in bytes…
constexpr int32_t first_cap_most = 64;     // …and in blocks
constexpr int32_t cap_most = 1024;         // blocks in a list however large the option is
constexpr int32_t short_list = 8;          // blocks in one that takes the room of two
constexpr uint32_t budget_at_first = 128;  // KiB that all classes of a thread keep together at first…
constexpr uint32_t step = 4;               // …and more for each class that was evicted too early…
constexpr uint32_t part = 64;              // …and a part of what it is, or what the class had,
constexpr uint32_t soon = 256;             // which is needed again before so many more slow calls;
constexpr uint8_t often = 8;               // or whose last block comes back so many times…
constexpr uint32_t not_much_later = 2048;  // …before so many more each time,
constexpr uint32_t large_part = 8;         // and a larger part then
constexpr int32_t few_blocks = 4;          // in a list of the usual SLUICE_CACHE, whatever they take
constexpr int32_t long_list = 16;  // …and as the budget allows, where a thread flushes hardly any other class…
constexpr uint8_t by_far = 64;     // …in so many flushes; each of another counts for half of them
constexpr uint32_t most_for_others = 4;     // times the first budget: larger blocks of others make no larger one grow
constexpr uint32_t flushes_per_step = 256;  // of lists that are too short, for a larger budget
constexpr uint32_t no_bound = UINT32_MAX / 2;  // the budget of a thread that needs more than most()

int32_t clamp(size_t value, int32_t low, int32_t high) noexcept {
  if (value < static_cast<size_t>(low)) return low;
  return value > static_cast<size_t>(high) ? high : static_cast<int32_t>(value);
}

// What SLUICE_CACHE allows all classes together, in KiB; a page for each where it allows less. Who needs more than that
// would evict for good, one class for the other: there the bounds of the lists do alone.
uint32_t most() noexcept {
  constexpr size_t least = 4;
  const size_t each = options.cache >> 10;
  return static_cast<uint32_t>(each > least ? each : least) * (size_class_count - 1);
}

// Blocks of the class that are with the program, in caches, or remote; or as many as matter.
int32_t used_blocks(const ClassUse& use) noexcept {
  const uint32_t used = use.used.load(std::memory_order_relaxed);
  return used < INT32_MAX ? static_cast<int32_t>(used) : INT32_MAX;
}

// What the class with long lists keeps is counted apart.
void count_kept(ThreadCache& c, unsigned k, uint32_t kib) noexcept {
  const uint32_t counted = k != c.long_class ? kib : 0;
  c.kept_kib += counted - c.uses[k].kept_kib;
  c.uses[k].kept_kib = counted;
  c.uses[k].keeps_all = k == c.long_class;
}

// How many blocks of the class the whole budget allows.
uint32_t most_within(const ThreadCache& c, unsigned k) noexcept {
  return static_cast<uint32_t>((size_t{c.budget_kib} << 10) / class_sizes[k]);
}

// So many blocks of a class whose room counts, or as many as its bin may hold; but no more than the budget allows, or a
// class that holds nothing would make it larger.
__attribute__((noinline, cold)) uint32_t blocks_or_room(const ThreadCache& c, unsigned k, uint32_t blocks) noexcept {
  const uint32_t room = c.uses[k].earned;
  if (blocks >= room) return blocks;
  const uint32_t within = most_within(c, k);
  return room < within ? room : blocks < within ? within : blocks;
}
uint32_t or_room(const ThreadCache& c, unsigned k, uint32_t blocks) noexcept {
  return counts_room(k) ? blocks_or_room(c, k, blocks) : blocks;
}

// What the bin of a class in use may hold, and what its lists hold but for one where that is more than the budget.
__attribute__((noinline, cold)) void count_room(ThreadCache& c, unsigned k, int32_t held) noexcept {
  const uint32_t blocks = blocks_or_room(c, k, static_cast<uint32_t>(held));
  count_kept(c, k, to_kib(blocks > most_within(c, k) ? blocks - 1 : blocks, k));
}

// Of a class in use only what its lists hold counts, and so much of it does not.
__attribute__((always_inline)) inline void count_lists(ThreadCache& c, unsigned k, int32_t held) noexcept {
  if (counts_room(k)) return count_room(c, k, held);
  const size_t size = class_sizes[k];
  const size_t bytes = static_cast<uint32_t>(held) * size;
  const size_t free = size > first_cap_bytes ? size : first_cap_bytes;
  count_kept(c, k, bytes > free ? static_cast<uint32_t>((bytes - free + 1023) >> 10) : 0);
}

// Bounds the bin: it has so many blocks, and takes so many others at most.
void bound_bin(ThreadCache& c, unsigned k, int32_t length, int32_t others) noexcept {
  const int32_t bound = (length > 0 ? length : 0) + (others > 0 ? others : 0);
  const int32_t earned = c.uses[k].earned;
  set_cap(c, k, bound < earned ? bound : earned);
}

// Likewise, where at least so many others may come before the last one that the program has.
void leave_room(ThreadCache& c, unsigned k, int32_t length, int32_t others) noexcept {
  if (delays_reuse) return set_cap(c, k, c.uses[k].earned);
  bound_bin(c, k, length, others);
}

// What comes back too early is paid for with time: by its thread, and by all threads together. Both save up so much at
// most, so that it may come that often without a larger budget. What had 48 KiB costs its thread 4 ms; what had little
// costs less, and what had much as much more, since its pages go, and others are filled for it. Of four threads and
// more each pays less, a half to a quarter, since larger budgets are as many.
constexpr uint64_t parts_of_ms = 16;
constexpr uint64_t price = 4 * parts_of_ms;
constexpr uint64_t most_price = 32 * price;
constexpr uint32_t kib_at_price = 48;
constexpr uint32_t kib_of_any = 16;  // as much as the call itself costs
constexpr uint64_t saved_up = 256 * parts_of_ms;
constexpr size_t most_shares = 4;
constexpr uint64_t all_in_a_ms = 16;  // times that all threads may together…
constexpr uint64_t saved_up_by_all = 256 * all_in_a_ms;
constinit std::atomic<uint64_t> all_paid_until{0};  // …and have, as ThreadCache::paid_until, in such times
constinit std::atomic<uint32_t> shares{1};

uint64_t price_of(uint32_t kib) noexcept {
  const uint64_t all = price * (kib + kib_of_any) / (kib_at_price + kib_of_any);
  const uint64_t at_most = all < most_price ? all : most_price;
  return at_most / shares.load(std::memory_order_relaxed);
}

}  // namespace

void note_live(size_t threads) noexcept {
  const size_t half = threads / 2;
  shares.store(static_cast<uint32_t>(half < 1             ? 1
                                     : half < most_shares ? half
                                                          : most_shares),
               std::memory_order_relaxed);
}

bool is_too_often(ThreadCache& c, uint32_t kib) noexcept {
  const uint64_t costs = price_of(kib);
  const uint64_t now_ms = os::clock_ms();
  const uint64_t now = now_ms * parts_of_ms;
  const uint64_t from = c.paid_until > now ? c.paid_until : now;
  if (from + costs > now + saved_up) return true;
  const uint64_t all_now = now_ms * all_in_a_ms;
  uint64_t of_all = all_paid_until.load(std::memory_order_relaxed);
  const uint64_t all_from = of_all > all_now ? of_all : all_now;
  if (all_from >= all_now + saved_up_by_all) return true;
  // Who is overtaken by another thread pays nothing.
  (void)all_paid_until.compare_exchange_strong(of_all, all_from + 1, std::memory_order_relaxed);
  c.paid_until = from + costs;
  return false;
}

namespace {

// What is kept becomes the budget. It may count blocks that the program has: so much that is never kept does not.
void bound_again(ThreadCache& c) noexcept {
  const uint32_t least = most();
  const uint32_t largest = 4 * least;
  c.budget_kib = c.kept_kib < least ? least : c.kept_kib < largest ? c.kept_kib : largest;
}

}  // namespace

// Half of SLUICE_CACHE for each of the two lists of a class, and two blocks if one fits there, or four of the usual
// SLUICE_CACHE: with fewer, half the calls of a program that replaces such blocks take the slow path.
int32_t most_cap(unsigned k) noexcept {
  constexpr size_t bytes_for_each = usual_cache / few_blocks;
  const int32_t least = options.cache >= class_sizes[k] ? clamp(options.cache / bytes_for_each, 2, few_blocks) : 1;
  return clamp(options.cache / 2 / class_sizes[k], least, cap_most);
}

int32_t first_cap(unsigned k) noexcept {
  const int32_t cap = clamp(first_cap_bytes / class_sizes[k], 2, first_cap_most);
  return cap < most_cap(k) ? cap : most_cap(k);
}

uint32_t at_first() noexcept {
  return budget_at_first < most() ? budget_at_first : most();
}

void renew(ThreadCache& c) noexcept {
  const uint32_t half = (c.budget_kib < most() ? c.budget_kib : most()) / 2;
  c.budget_kib = half > at_first() ? half : at_first();
  c.flushes_ahead = 0;
  for (unsigned k = 1; k < size_class_count; ++k)
    if (is_shared(c, k)) c.uses[k].from_others = false;
}

void begin_anew(ThreadCache& c) noexcept {
  for (uint64_t& spared : c.spared)
    spared = 0;
  c.budget_kib = at_first();
}

void grow(ThreadCache& c, uint32_t more) noexcept {
  const uint32_t wanted = c.budget_kib + more;
  c.budget_kib = wanted < most() ? wanted : no_bound;
}

namespace {

// Takes note of a flush. Returns: whether hardly any of late was of another class.
bool is_most_flushed(ThreadCache& c, unsigned k) noexcept {
  if (c.most_flushed == k) {
    if (c.flushes_ahead < by_far) ++c.flushes_ahead;
  } else if (c.flushes_ahead != 0) {
    c.flushes_ahead /= 2;
  } else {
    c.most_flushed = static_cast<uint8_t>(k);
  }
  return c.most_flushed == k && c.flushes_ahead == by_far;
}

// How long a list of the class that is flushed most may become within the budget, which must allow both of its lists.
// Where they are too short it grows, in time, unless they are about to be longer than that.
__attribute__((noinline, cold)) int32_t longest_of_most_flushed(ThreadCache& c, unsigned k, int32_t usual,
                                                                int32_t flushed, bool* another_is_long) noexcept {
  if (usual < few_blocks) return usual;
  const int32_t least = usual > long_list ? usual : long_list;
  const size_t used = static_cast<size_t>(used_blocks(c.uses[k])) + static_cast<size_t>(flushed);
  const int32_t wanted = long_lists::wanted(k, least, used);
  const int32_t allowed = clamp(size_t{c.budget_kib} * 1024 / 2 / class_sizes[k], usual, least);
  const int32_t earned = c.uses[k].earned;
  if (earned < allowed || earned >= wanted) return allowed;
  if (wanted == least) {
    if (++c.short_flushes % flushes_per_step == 0 && is_too_often(c, 0)) grow(c, step + c.budget_kib / large_part);
  } else if (long_lists::are_worth_it(c)) {
    *another_is_long = c.long_class != 0 && c.long_class != k;
    if (!*another_is_long && long_lists::lengthen(c, k, 2 * earned < wanted ? 2 * earned : wanted)) count_kept(c, k, 0);
  }
  return allowed;
}

}  // namespace

bool earn(ThreadCache& c, unsigned k, int32_t flushed) noexcept {
  ClassUse& use = c.uses[k];
  const int32_t usual = most_cap(k);
  bool another_is_long = false;
  const int32_t most = is_most_flushed(c, k) ? longest_of_most_flushed(c, k, usual, flushed, &another_is_long) : usual;
  const int32_t more = 2 * use.earned < most ? 2 * use.earned : most;
  if (more > use.earned) use.earned = static_cast<uint16_t>(more);
  use.overflowed = false;
  return another_is_long;
}

bool is_short(const ThreadCache& c, unsigned k) noexcept {
  return c.uses[k].earned < short_list && c.uses[k].earned < 2 * most_cap(k);
}

void lengthen(ThreadCache& c, unsigned k) noexcept {
  const int32_t both = 2 * c.uses[k].earned;
  c.uses[k].earned = static_cast<uint16_t>(both < short_list ? both : short_list);
}

void note_flushed(ThreadCache& c, unsigned k) noexcept {
  count_kept(c, k, 0);
  const int32_t used = used_blocks(c.uses[k]);
  const int32_t length = c.bins[k].cap - room_of(c, k);
  if (counts_room(k))
    bound_bin(c, k, length, 0);
  else if (used != 0)
    leave_room(c, k, length, used - length - 1);
}

bool weigh(ThreadCache& c, unsigned k, int32_t at_hand) noexcept {
  if (c.pending.load(std::memory_order_relaxed) != unit_index_none) slab::collect_pending(c);
  const ClassUse& all = c.uses[k];
  const int32_t length = c.bins[k].cap - room_of(c, k);
  const int32_t held = length + c.spare_count[k] > 0 ? length + c.spare_count[k] : 0;  // less: a handler freed into it
  const int32_t live = used_blocks(all) - held - at_hand;
  if (live <= 0) {  // or its lists hold blocks of other threads
    const uint32_t kept = all.carved > static_cast<uint32_t>(held) ? all.carved : static_cast<uint32_t>(held);
    count_kept(c, k, to_kib(or_room(c, k, kept), k));
    set_cap(c, k, all.earned);
    return true;
  }
  count_lists(c, k, held);
  // Of those that are live some may lie among the scattered blocks.
  const auto scattered = static_cast<int32_t>(c.scattered_count.load(std::memory_order_relaxed));
  leave_room(c, k, length, live - scattered - 1 + at_hand);
  return false;
}

void weigh_in_use(ThreadCache& c, unsigned k, int32_t held, int32_t at_hand) noexcept {
  ClassUse& use = c.uses[k];
  long_lists::note_in_use(c, k);
  if (counts_carved(c, k)) return;
  const int32_t live = used_blocks(use) - held - at_hand;
  const bool others_alone = use.carved == 0;  // blocks of other threads
  if (others_alone || live > use.earned + static_cast<int32_t>(scattered_capacity)) return count_lists(c, k, held);
  if (!keeps_all(c, k)) (void)weigh(c, k, at_hand);
}

bool keeps_all(ThreadCache& c, unsigned k) noexcept {
  const uint32_t all = k != c.long_class ? to_kib(or_room(c, k, c.uses[k].carved), k) : 0;
  if (c.kept_kib - c.uses[k].kept_kib + all > c.budget_kib) return false;
  count_kept(c, k, all);
  c.uses[k].keeps_all = true;
  return true;
}

void note_evicted(ThreadCache& c, unsigned k) noexcept {
  ClassUse& use = c.uses[k];
  use.carved_then = static_cast<uint16_t>(use.carved < UINT16_MAX ? use.carved : UINT16_MAX);
  const auto now = static_cast<uint16_t>(c.slow_calls);
  use.evicted_at = now != 0 ? now : 1;
  if (counts_room(k) && use.carved == 0) use.evicted_at = 0;  // nothing went but blocks of others, or room
  use.lent_kib = 0;
}

void note_idle(ThreadCache& c, unsigned k) noexcept {
  note_evicted(c, k);
  if (c.budget_kib == no_bound) bound_again(c);
  ClassUse& use = c.uses[k];
  const uint32_t excess = c.budget_kib > at_first() ? c.budget_kib - at_first() : 0;
  const uint32_t less = use.kept_kib < excess ? use.kept_kib : excess;
  c.budget_kib -= less;
  use.earned = static_cast<uint16_t>(first_cap(k));
  use.lent_kib = less < UINT16_MAX ? static_cast<uint16_t>(less) : UINT16_MAX;
  if (less == 0) use.evicted_at = 0;  // not for want of budget
  c.spared[k / 64] &= ~(uint64_t{1} << k % 64);
}

void note_return(ThreadCache& c, unsigned k) noexcept {
  const uint32_t lent = c.uses[k].lent_kib;
  const uint32_t had = to_kib(c.uses[k].carved_then, k);
  const uint32_t usual = step + c.budget_kib / part;
  if (static_cast<uint16_t>(c.slow_calls - c.uses[k].evicted_at) < soon && is_too_often(c, had))
    grow(c, lent != 0 ? lent : had > usual ? had : usual);
  c.uses[k].evicted_at = 0;
}

void note_passed_on(ThreadCache& c, unsigned k) noexcept {
  if (c.budget_kib >= most_for_others * at_first())
    c.uses[k].evicted_at = 0;
  else
    note_return(c, k);
}

void note_last_free(ThreadCache& c, unsigned k) noexcept {
  ClassUse& use = c.uses[k];
  if (counts_room(k) && use.carved == 0 && c.budget_kib >= most_for_others * at_first()) return;
  const auto now = static_cast<uint16_t>(c.slow_calls);
  const bool again = static_cast<uint16_t>(now - use.last_free_at) < not_much_later;
  use.last_free_at = now;
  if (!again) use.last_frees = 0;
  if (again && use.last_frees < often) ++use.last_frees;
  if (use.last_frees == often && is_too_often(c, 0)) grow(c, step + c.budget_kib / large_part);
}

}  // namespace sluice::budget
