// How a cache is filled and flushed. See thread_cache.hpp; how it comes and goes with its thread: thread_life.cpp.
#include "heap/thread_cache.hpp"

#include "base/check.hpp"
#include "base/options.hpp"
#include "heap/announce.hpp"
#include "heap/block_state.hpp"
#include "heap/budget.hpp"
#include "heap/counters.hpp"
#include "heap/link.hpp"
#include "heap/long_lists.hpp"
#include "heap/own_spans.hpp"
#include "heap/remote_frees.hpp"
#include "heap/reuse.hpp"
#include "heap/slab.hpp"
#include "heap/sparse.hpp"
#include "heap/thread_life.hpp"
#include "heap/transfer.hpp"
#include "os/memory.hpp"
#include "os/seldom_touched.hpp"
#include "pages/region.hpp"

namespace sluice::cache {

constinit std::atomic<const ArenaHooks*> arena_hooks{nullptr};
SLUICE_SELDOM_TOUCHED constinit ThreadCache shared_cache{};

namespace {

using slab::BlockList;

constexpr uint8_t orderly_streak = 3;     // blocks side by side that make an order…
constexpr uint8_t most_streak = 15;       // …which is counted so far
constexpr uint8_t most_unseen = 8;        // blocks that are set aside after one that lay far from the last
constexpr uint64_t ms_per_spare = 10;     // from one first slab of a class that was not idle to the next…
constexpr uint64_t spares_saved_up = 8;   // …but so many may come at once
constexpr uint64_t rests_a_ms = 8;        // slabs of evicted classes that give their rests back, in all threads…
constexpr uint64_t rests_saved_up = 256;  // …together, and so many may come at once
constexpr uint32_t most_refilled = 512;   // blocks that come from a slab at once: no call takes long
constexpr uint32_t others_tick = 8;       // slow calls from one of a class to the next
constexpr uint32_t all_idle_seen = 2 * idle_after;  // what lay idle has gone by then

}  // namespace

bool flush_list(ThreadCache& c, void* block) noexcept {
  slab::RemoteFrees remote;
  int32_t balance = 0;
  while (block != nullptr) {
    Unit* const s = slab::of(block);
    if (s->owner.load(std::memory_order_relaxed) == &c) {
      const slab::OwnRuns own = slab::put_list(c, block);
      block = own.rest;
      balance += own.runs;
    } else {
      block = remote.put(s, block).rest;
      --balance;
    }
  }
  return balance > 0;
}

namespace {

// Frees blocks that lie anywhere into the slabs of other caches.
__attribute__((noinline)) void put_scattered_remote(void* const* blocks, uint32_t count) noexcept {
  slab::RemoteFrees remote;
  for (uint32_t i = 0; i < count; ++i) {
    set_next(blocks[i], nullptr);
    (void)remote.put(slab::of(blocks[i]), blocks[i]);
  }
}

}  // namespace

void flush_scattered(ThreadCache& c) noexcept {
  const uint32_t others = slab::put_scattered(c, c.scattered, c.scattered_count.load(std::memory_order_relaxed));
  for (uint32_t i = 0; i < others; ++i)
    c.uses[class_bytes()[unit_index_of(c.scattered[i])] / bin_stride].from_others = true;
  if (others != 0) put_scattered_remote(c.scattered, others);
  c.scattered_count.store(0, std::memory_order_release);
}

namespace {

// What waits is counted as freed when it leaves. Requires c.lock.
void count_leaving(ThreadCache& c, const void* block) noexcept SLUICE_REQUIRES(c.lock) {
  if (counted(&c)) counters::count_free(c.counters, class_bytes()[unit_index_of(block)] / bin_stride);
}

// Gives back what waits in a secure build to be used again. Requires c.lock.
inline void flush_delayed(ThreadCache& c, unsigned k) noexcept SLUICE_REQUIRES(c.lock) {
  while (void* const block = hardened::take_delayed(c, k)) {
    count_leaving(c, block);
    if (*static_cast<const uintptr_t*>(block) != 0) {
      (void)link_detail::report_damaged_link(block);
      continue;
    }
    set_next(block, nullptr);
    (void)flush_list(c, block);
  }
}

// Signal handlers find an empty bin from the beginning, and may free into it. Requires c.lock.
bool flush_bin(ThreadCache& c, unsigned k, bool passes_on = false) noexcept SLUICE_REQUIRES(c.lock) {
  Bin& bin = c.bins[k];
  void* const head = bin.head;
  void* const spare = c.spare[k];
  bin.head = c.spare[k] = nullptr;
  c.spare_count[k] = 0;
  c.uses[k].refilled_itself = false;
  if (c.long_class == k) long_lists::end(c, budget::most_cap(k));
  budget::renew_room(c, k, 0);
  bool was_for_others = false;
  for (void* const list : {head, spare}) {
    if (list == nullptr) continue;
    if (passes_on && transfer::give(c, k, list))
      was_for_others = true;
    else
      (void)flush_list(c, list);
  }
  budget::note_flushed(c, k);
  return was_for_others;
}

}  // namespace

namespace {

// From now on the blocks of the class lie in transfer lists. Requires c.lock, and that its own lists are empty.
void begin_to_share(ThreadCache& c, unsigned k) noexcept SLUICE_REQUIRES(c.lock) {
  c.uses[k].from_others = true;
  c.uses[k].streak = 0;
  c.uses[k].seen_list.alone_since = 0;
  budget::set_cap(c, k, 0);
}

// Whether lists of a shared class are worth their memory again: the thread is alone, or they are not of the largest
// blocks, and others need little.
bool may_keep_again(const ThreadCache& c, unsigned k) noexcept {
  return (!budget::counts_room(k) && c.kept_kib <= c.budget_kib / 2) ||
         !transfer::has_others.load(std::memory_order_relaxed);
}

}  // namespace

void flush_class(ThreadCache& c, unsigned k) noexcept {
  if (delays_reuse) flush_delayed(c, k);
  (void)flush_bin(c, k);
  slab::destroy_empty(c, k);
}

void renew_stand_in(ThreadCache& c, unsigned k) noexcept {
  constexpr size_t worth_it = 2048;  // bytes; of smaller ones a thread has several at once, for which pages are shared
  if (class_sizes[k] >= worth_it) c.stood_in[k] = 0;
}

void evict(ThreadCache& c, unsigned k) noexcept {
  budget::note_evicted(c, k);
  renew_stand_in(c, k);
  if (delays_reuse && !hardened::waits_with_others(k)) return flush_class(c, k);
  const bool was_for_others = flush_bin(c, k, transfer::passes_on(k));
  if (transfer::shares(k) && was_for_others) begin_to_share(c, k);
  slab::destroy_empty(c, k);
}

namespace {

// Calls act(waiting) for the blocks whose ends are not checked yet. In other builds there are none.
template <typename Cache, typename Act>
void for_each_waiting([[maybe_unused]] Cache& c, [[maybe_unused]] Act act) noexcept {
  if constexpr (checks_blocks) {
    for (auto& slot : c.secure_part.waiting)
      if (slot) act(slot);
  }
}

}  // namespace

void flush_delayed(ThreadCache& c) noexcept {
  for (unsigned k = 1; delays_reuse && k < size_class_count; ++k)
    flush_delayed(c, k);
}

void flush_all(ThreadCache& c) noexcept {
  // Called back under the lock, which the analysis does not see.
  for_each_waiting(c, [&c](WaitingBlock& slot) SLUICE_UNCHECKED_LOCKS {
    const WaitingBlock waiting = slot;
    slot = WaitingBlock();
    count_leaving(c, waiting.block());
    if (!hardened::end(waiting)) return;
    set_next(waiting.block(), nullptr);
    (void)flush_list(c, waiting.block());
  });
  flush_delayed(c);
  for (unsigned k = 1; k < size_class_count; ++k)
    (void)flush_bin(c, k);
  flush_scattered(c);
  slab::collect_pending(c);
  slab::destroy_empty(c);
  own_spans::give_back(c);
}

void flush_but(ThreadCache& c, unsigned busy) noexcept {
  for (unsigned k = 1; k < size_class_count; ++k) {
    if (k == busy) continue;
    if (delays_reuse) flush_delayed(c, k);
    (void)flush_bin(c, k);
  }
  flush_scattered(c);
  slab::collect_pending(c);
  slab::destroy_empty(c);
  own_spans::give_back(c);
}

namespace {

// The caller may be a signal handler that interrupted a call which takes a block from the bin, or puts one there: that
// one is left alone until the thread's next slow call.
void end_long_soon(ThreadCache& c) noexcept {
  c.long_ends = true;
  if (region::mutex().held_by_this_thread() || !c.lock.try_lock()) return;
  void* const spare = c.spare[c.long_class];
  c.spare[c.long_class] = nullptr;
  c.spare_count[c.long_class] = 0;
  if (spare != nullptr) {
    (void)flush_list(c, spare);
    slab::destroy_empty(c, c.long_class);
  }
  c.lock.unlock();
}

}  // namespace

void make_way_if_long(ThreadCache& c, size_t units) noexcept {
  if (region::free_dirty_bytes() < units * unit_size && long_lists::are_in_the_way(c, units)) end_long_soon(c);
}

void share_long(ThreadCache& c) noexcept {
  if (c.long_class != 0 && long_lists::are_more_than_shared(c)) end_long_soon(c);
}

Unit* own_partial_slab(ThreadCache& c, unsigned k) noexcept {
  if (c.pending.load(std::memory_order_relaxed) != unit_index_none) slab::collect_pending(c);
  if (c.partial[k] == unit_index_none && c.scattered_count.load(std::memory_order_relaxed) != 0) flush_scattered(c);
  return c.partial[k] != unit_index_none ? region::unit_at(c.partial[k]) : nullptr;
}

Unit* partial_slab(ThreadCache& c, unsigned k) noexcept {
  if (Unit* s = own_partial_slab(c, k)) return s;
  if (Unit* s = steal(c, k)) return s;
  if (own_spans::has_more_than_several(c)) own_spans::give_back(c);
  if (c.long_class != 0 && c.long_class != k && long_lists::are_in_the_way(c, slab::units_per_slab(k)))
    flush_class(c, c.long_class);
  return slab::create(c, k);
}

Unit* sparing_slab(ThreadCache& c, unsigned k) noexcept {
  Unit* const s = partial_slab(c, k);
  uint64_t& spared = c.spared[k / 64];
  const uint64_t bit = uint64_t{1} << k % 64;
  if (s == nullptr || c.uses[k].carved != 0 || !s->slab.has_pages) return s;
  if ((spared & bit) != 0) {
    const uint64_t now = os::clock_ms();
    const uint64_t from = c.spared_until > now ? c.spared_until : now;
    if (from + ms_per_spare > now + spares_saved_up * ms_per_spare) return s;
    c.spared_until = from + ms_per_spare;
  }
  spared |= bit;
  slab::drop_rest(s, 1);
  return s;
}

namespace {

// Of the whole process: what slabs that are made again have given back is paid for at this time, in ms times
// rests_a_ms.
constinit std::atomic<uint64_t> given_back_until{0};

// Whether the rest of such a slab may go, which costs a system call, and a page fault for each page that is needed soon
// after all: a twelfth of one processor's time if all of them are. Threads that race may count one for two.
bool may_give_back_rest() noexcept {
  const uint64_t now = os::clock_ms() * rests_a_ms;
  const uint64_t until = given_back_until.load(std::memory_order_relaxed);
  const uint64_t from = until > now ? until : now;
  if (from - now >= rests_saved_up) return false;
  given_back_until.store(from + 1, std::memory_order_relaxed);
  return true;
}

// As partial_slab, for a class that was evicted. Its slab lay elsewhere then. Were the new one to keep the pages that
// others have left in memory beside those that this class needs, each slab would be in memory as a whole after a while.
__attribute__((noinline, cold)) Unit* partial_slab_again(ThreadCache& c, unsigned k) noexcept SLUICE_REQUIRES(c.lock) {
  budget::note_return(c, k);
  Unit* const s = partial_slab(c, k);
  const size_t carved = c.uses[k].carved_then;
  if (s == nullptr || s->slab.carved != 0) return s;
  os::call_counts.slabs_made_again.fetch_add(1, std::memory_order_relaxed);
  if (may_give_back_rest()) slab::drop_rest(s, carved > 2 ? carved : 2);
  return s;
}

// Puts a list into an empty bin. What a signal handler has freed meanwhile lies there. Requires c.lock.
inline void fill(ThreadCache& c, unsigned k, BlockList blocks) noexcept SLUICE_REQUIRES(c.lock) {
  Bin& bin = c.bins[k];
  void* const freed = bin.head;
  bin.head = blocks.first;
  budget::renew_room(c, k, static_cast<int32_t>(blocks.count));
  if (freed != nullptr) [[unlikely]]
    (void)flush_list(c, freed);
  budget::weigh_in_use(c, k, static_cast<int32_t>(blocks.count) + c.spare_count[k], 0);
}

// Whether the caller is a handler that interrupted the region, and somebody holds the cache, who may wait for the
// region. The region's lock is looked at last: its line is every thread's. Checked builds stop who takes a cache's lock
// after it, be it free or not.
inline bool waits_for_itself(const ThreadCache& c) noexcept {
  return (checked || c.lock.is_taken()) && region::mutex().held_by_this_thread();
}

// Lists become longer. Of one class alone they are longer than the budget allows.
void earn(ThreadCache& c, unsigned k, int32_t flushed) noexcept SLUICE_REQUIRES(c.lock) {
  if (budget::earn(c, k, flushed)) flush_class(c, c.long_class);
}

// Up to `most` blocks that others have freed, if there are any; else of slabs, and of a new one if need be. None where
// there is no memory.
BlockList take_many(ThreadCache& c, unsigned k, uint32_t most) noexcept SLUICE_REQUIRES(c.lock) {
  if (transfer::passes_on(k) && transfer::were_used.load(std::memory_order_relaxed)) {
    const BlockList blocks = transfer::take(c, k, most);
    if (blocks.first != nullptr) {
      if (c.uses[k].evicted_at != 0) budget::note_passed_on(c, k);
      return blocks;
    }
  }
  Unit* const s = c.uses[k].evicted_at == 0 ? sparing_slab(c, k) : partial_slab_again(c, k);
  return s != nullptr ? slab::take_blocks(s, most) : BlockList{nullptr, 0};
}

// Fills an empty bin. All of it happens under the lock, so that a fork never finds the lists half changed.
__attribute__((noinline)) bool refill(ThreadCache& c, unsigned k) noexcept {
  if (waits_for_itself(c)) [[unlikely]]
    return false;
  {
    const CacheLock held(c.lock);
    if (c.spare[k] != nullptr) {
      const BlockList blocks{c.spare[k], static_cast<uint32_t>(c.spare_count[k])};
      c.spare[k] = nullptr;
      c.spare_count[k] = 0;
      c.uses[k].refilled_itself = true;
      fill(c, k, blocks);
      return true;
    }
    c.uses[k].refilled_itself = false;
    c.swaps_from = c.slow_calls;
    if (k == c.most_flushed) ++c.short_refills;
    if (c.uses[k].overflowed) earn(c, k, 0);
    const BlockList blocks = take_many(c, k, c.uses[k].earned < most_refilled ? c.uses[k].earned : most_refilled);
    if (blocks.first == nullptr) return false;
    fill(c, k, blocks);
  }
  tick(c, k);
  return true;
}

// Whether nothing is left that slow calls would give back: none but swaps has come for so long that what lay idle has
// gone, and of what is free and in memory nothing is due.
bool has_settled(const ThreadCache& c) noexcept {
  return c.slow_calls - c.swaps_from >= all_idle_seen && region::dirty_may_stay() &&
         sparse::next_due.load(std::memory_order_relaxed) == sparse::never;
}

// Whether fewer slow calls of the class do no harm to others, since what lies idle goes back in these: others take slow
// calls, too, or its lists are short and all is settled.
bool may_take_fewer(const ThreadCache& c, unsigned k) noexcept {
  return c.slow_calls - c.uses[k].used_at >= others_tick || (has_settled(c) && budget::is_short(c, k));
}

// Whether blocks go from one list of the class to the other and back, while the slabs have no part in it: with more
// room they would take the fast path.
bool swings(const ThreadCache& c, unsigned k) noexcept SLUICE_REQUIRES(c.lock) {
  return c.uses[k].refilled_itself && may_take_fewer(c, k) && c.spare[k] != nullptr &&
         slab::of(c.spare[k])->owner.load(std::memory_order_relaxed) == &c;
}

// Whether all that comes back to the class's bin was allocated by other threads, who need it more.
bool is_for_others(const ThreadCache& c, unsigned k) noexcept SLUICE_REQUIRES(c.lock) {
  return transfer::passes_on(k) && c.uses[k].carved == 0;
}

// Makes room in a full bin: its list becomes the spare one, and the spare one goes back to the slabs. The bin grows,
// since it is worth it: see put_back. A list for others is passed on at once, if there is room.
void make_room(ThreadCache& c, unsigned k) noexcept {
  Bin& bin = c.bins[k];
  {
    const CacheLock held(c.lock);
    void* const list = bin.head;
    const int32_t length = bin.cap - budget::room_of(c, k);
    bin.head = nullptr;
    void* old = nullptr;
    int32_t flushed = 0;
    if (!is_for_others(c, k) || !transfer::give(c, k, list)) {
      old = c.spare[k];
      flushed = c.spare_count[k];
      c.spare[k] = list;
      c.spare_count[k] = static_cast<int16_t>(length);
    }
    // Blocks of other threads are of more use there than here: they do not make the bin grow.
    const bool mostly_own = old != nullptr && !transfer::give(c, k, old) && flush_list(c, old);
    if (old == nullptr && budget::is_short(c, k) && swings(c, k)) {
      budget::lengthen(c, k);
    } else {
      if (old != nullptr ? mostly_own : swings(c, k)) earn(c, k, flushed);
      c.swaps_from = c.slow_calls;
    }
    if (mostly_own) c.uses[k].from_others = false;
    c.uses[k].refilled_itself = false;
    budget::renew_room(c, k, 0);
    budget::weigh_in_use(c, k, c.spare_count[k], 1);
  }
  tick(c, k);
}

// Blocks of its class that the program has beside the one that comes to a full bin, in so far as they do not lie among
// the scattered ones; 0: it may be the last.
uint32_t others_of(const ThreadCache& c, unsigned k) noexcept SLUICE_UNCHECKED_LOCKS {
  const uint32_t live =
      c.uses[k].used.load(std::memory_order_relaxed) - static_cast<uint32_t>(c.bins[k].cap + c.spare_count[k]);
  const uint32_t scattered = c.scattered_count.load(std::memory_order_relaxed);
  return live - 1 > scattered ? live - 1 - scattered : 0;
}

// As put_back, for a block that may be the last; see weigh. Says whether it was put into its slab; if not, the bin may
// still have no room.
__attribute__((noinline)) bool put_back_late(ThreadCache& c, unsigned k, void* block) noexcept {
  {
    const CacheLock held(c.lock);
    c.uses[k].used_at = c.slow_calls;
    if (budget::keeps_all(c, k)) {
      budget::set_cap(c, k, c.uses[k].earned);
    } else {
      if (c.scattered_count.load(std::memory_order_relaxed) != 0) flush_scattered(c);
      if (budget::weigh(c, k, 1)) budget::note_last_free(c, k);
    }
    if (c.uses[k].kept_kib > c.budget_kib) {  // more than all classes may keep: the others need not go for it
      set_next(block, nullptr);
      (void)flush_list(c, block);
      evict(c, k);
      c.uses[k].evicted_at = 0;
      return true;
    }
  }
  if (budget::room_of(c, k) > 0) tick(c, k);
  return false;
}

// Takes note of where a block lies that comes to a full bin. Returns: how many before it lay beside one another; 0
// where that makes no difference.
inline uint8_t note_place(ClassUse& use, unsigned k, const void* block) noexcept {
  if (budget::may_be_shared(k)) return 0;  // too large to be set aside
  const auto unit = static_cast<uint32_t>(unit_index_of(block));
  uint8_t streak = 0;
  if (unit == use.overflow_unit) streak = use.streak < most_streak ? static_cast<uint8_t>(use.streak + 1) : most_streak;
  use.streak = streak;
  use.overflow_unit = unit;
  return streak;
}

// Whether a block that comes to a full bin is to be weighed: the bin is bounded, or the block may be the last.
inline bool is_weighed(const ThreadCache& c, unsigned k) noexcept {
  return !delays_reuse && (c.bins[k].cap < c.uses[k].earned || (others_of(c, k) == 0 && !budget::counts_all(c, k)));
}

// Blocks that come back one beside the other go through the cache: a flush then costs little and brings order. A block
// that lies far from the last is most likely not in the processor's caches: it is set aside without being touched. Not
// so where other threads send them: each sends in its own order, and a flush of a list finds that.
inline bool is_scattered(const ThreadCache& c, unsigned k, uint8_t streak) noexcept {
  return c.spare[k] != nullptr && streak < orderly_streak && !budget::may_be_shared(k) && !c.uses[k].from_others;
}

// Puts a block where those of a shared class lie. False in a signal handler that interrupted the heap.
__attribute__((noinline)) bool put_as_shared(ThreadCache& c, unsigned k, void* block) noexcept {
  ClassUse& use = c.uses[k];
  if (waits_for_itself(c)) [[unlikely]]
    return false;
  let_in_who_wants_all(c);
  {
    const CacheLock held(c.lock);
    if (!use.from_others) {
      (void)flush_bin(c, k, true);
      begin_to_share(c, k);
      slab::destroy_empty(c, k);
    }
    transfer::give_one(c, k, block);
    if (may_keep_again(c, k)) use.from_others = false;
  }
  tick(c, k);
  return true;
}

// A block comes to a full bin. Says whether it was set aside or put into its slab; if not, the bin may have room now.
__attribute__((noinline)) bool put_back(ThreadCache& c, unsigned k, void* block, uint8_t streak) noexcept {
  if (waits_for_itself(c)) [[unlikely]] {
    put_shared(block);
    return true;
  }
  if (transfer::shares(k) && budget::is_shared(c, k)) [[unlikely]]  // since a signal handler came
    return put_as_shared(c, k, block);
  if (is_weighed(c, k)) {
    if (put_back_late(c, k, block)) return true;
    if (budget::room_of(c, k) > 0) return false;
  }
  if (!is_scattered(c, k, streak)) {
    c.uses[k].streak = 0;
    make_room(c, k);
    return false;
  }
  uint32_t count;
  while ((count = c.scattered_count.load(std::memory_order_relaxed)) == scattered_capacity) {
    {
      const CacheLock held(c.lock);
      flush_scattered(c);
    }
    tick(c, k);
  }
  set_aside(c, count, block);
  return true;
}

inline void put_into_bin(ThreadCache& c, unsigned k, void* block) noexcept {
  Bin& bin = c.bins[k];
  set_next(block, bin.head);
  keep_order();
  bin.head = block;
}

// Whether the two lists of a class may change places without being weighed: what it keeps is counted whatever they
// hold, and its bin is not bounded.
inline bool may_swap(const ThreadCache& c, unsigned k) noexcept {
  return budget::counts_carved(c, k) && c.bins[k].cap == c.uses[k].earned;
}

// Whether the full bin may become the second list as it is: there is none, and the bin does not grow, since the lists
// do not swing (see swings()).
inline bool may_swap_out(const ThreadCache& c, unsigned k) noexcept {
  const ClassUse& use = c.uses[k];
  return c.spare[k] == nullptr && c.bins[k].head != nullptr && may_swap(c, k) &&
         (!use.refilled_itself || !may_take_fewer(c, k));
}

// As make_room, where that is so; the block is the first of the bin then. Returns: whether it is. What is looked at
// before the lock is taken a signal handler may still change.
inline bool swap_out(ThreadCache& c, unsigned k, void* block) noexcept {
  if (delays_reuse || c.spare[k] != nullptr || !budget::counts_all(c, k) || waits_for_itself(c)) return false;
  set_next(block, nullptr);
  if (!c.lock.try_lock()) return false;
  const bool swapped = may_swap_out(c, k) && !is_for_others(c, k);
  if (swapped) {
    ClassUse& use = c.uses[k];
    Bin& bin = c.bins[k];
    c.spare_count[k] = static_cast<int16_t>(bin.cap - bin.room);
    c.spare[k] = bin.head;
    bin.head = block;
    keep_order();
    bin.room = bin.cap - 1;
    use.streak = 0;
    use.refilled_itself = false;
    long_lists::note_in_use(c, k);
  }
  c.lock.unlock();
  if (swapped) tick(c, k);
  return swapped;
}

// Apart, so that what is set aside needs no frame.
__attribute__((noinline)) void put_full_rest(ThreadCache& c, unsigned k, void* block, uint8_t streak) noexcept {
  if (swap_out(c, k, block)) return;
  Bin& bin = c.bins[k];
  do
    if (put_back(c, k, block, streak)) return;
  while (bin.room <= 0);
  put_into_bin(c, k, block);
  --bin.room;
}

// Whether the class is to be shared from now on, since a block comes to its bin, which has no room: a larger one of
// another thread, and others use such blocks at this time.
inline bool should_share(const ThreadCache& c, unsigned k, const void* block) noexcept {
  return budget::counts_room(k) && slab::of(block)->owner.load(std::memory_order_relaxed) != &c &&
         transfer::has_others.load(std::memory_order_relaxed) && transfer::others_came(c, k);
}

// A block comes to a bin without room. Returns: whether it lies where blocks of a shared class do now.
inline bool put_if_shared(ThreadCache& c, unsigned k, void* block) noexcept {
  return transfer::shares(k) && (c.uses[k].from_others || should_share(c, k, block)) && put_as_shared(c, k, block);
}

// A block of a shared class, which has no bin. Null where there is no memory, and in a signal handler that interrupted
// the heap.
__attribute__((noinline)) void* take_if_shared(ThreadCache& c, unsigned k) noexcept {
  if (waits_for_itself(c)) [[unlikely]]
    return nullptr;
  let_in_who_wants_all(c);
  void* block;
  {
    const CacheLock held(c.lock);
    if (may_keep_again(c, k)) c.uses[k].from_others = false;
    block = transfer::take_one(c, k);
    if (block == nullptr) block = transfer::take_from_common(c, k);
    if (block == nullptr) block = take_many(c, k, 1).first;
    if (!budget::is_shared(c, k)) {  // any more
      budget::renew_room(c, k, c.bins[k].cap - budget::room_of(c, k));
      budget::weigh_in_use(c, k, c.bins[k].cap - budget::room_of(c, k), 0);
    }
  }
  if (block != nullptr) tick(c, k);
  return block;
}

}  // namespace

// What a signal handler has freed into the bin meanwhile is left to refill().
void* take_second_list(ThreadCache& c, unsigned k) noexcept {
  if (delays_reuse || !budget::counts_all(c, k) || !c.lock.try_lock()) return nullptr;
  Bin& bin = c.bins[k];
  void* block = may_swap(c, k) ? c.spare[k] : nullptr;
  if (block != nullptr) {
    void* const rest = next_of(block);
    if (bin.head == nullptr) {
      bin.head = rest;
      bin.room = bin.cap - c.spare_count[k] + 1;
      c.spare[k] = nullptr;
      c.spare_count[k] = 0;
      c.uses[k].refilled_itself = true;
      c.uses[k].used_at = c.slow_calls;
    } else {
      block = nullptr;
    }
  }
  c.lock.unlock();
  return block;
}

constinit uint8_t most_stood_in = 4;

unsigned stand_in(ThreadCache& c, unsigned k) noexcept {
  if (waits_for_itself(c)) return k;
  const unsigned other = stand_in_of(k);
  if (other != k) {
    const CacheLock held(c.lock);
    if (c.uses[k].carved == 0 && c.spare[k] == nullptr) {
      ++c.stood_in[k];
      return other;
    }
  }
  c.stood_in[k] = most_stood_in;
  return k;
}

// A signal handler that comes at the end of a refill may take all that it brought, and one at the end of a flush may
// use up the room: each looks again.
void* take(ThreadCache& c, unsigned k) noexcept {
  if (transfer::shares(k) && budget::is_shared(c, k)) return take_if_shared(c, k);
  Bin& bin = c.bins[k];
  void* block;
  while ((block = bin.head) == nullptr)
    if (!refill(c, k)) return nullptr;
  bin.head = next_of(block);
  keep_order();
  budget::change_room(c, k, 1);
  return block;
}

namespace {

// Sets a block aside that comes to a full bin, where it lies far from others. Says whether it has.
inline __attribute__((always_inline)) bool set_aside_if_scattered(ThreadCache& c, unsigned k, void* block,
                                                                  uint8_t streak) noexcept {
  if (!is_scattered(c, k, streak) || is_weighed(c, k)) [[unlikely]]
    return false;
  if (streak == 0 && others_of(c, k) > most_unseen) c.uses[k].unseen = most_unseen;
  c.uses[k].overflowed = true;
  const uint32_t count = c.scattered_count.load(std::memory_order_relaxed);  // last: a handler may set blocks aside
  if (count == scattered_capacity) [[unlikely]]
    return false;
  set_aside(c, count, block);
  return true;
}

}  // namespace

void put_full(ThreadCache& c, unsigned k, void* block) noexcept {
  if (put_if_shared(c, k, block)) return;
  const uint8_t streak = note_place(c.uses[k], k, block);
  if (!set_aside_if_scattered(c, k, block, streak)) put_full_rest(c, k, block, streak);
}

void put(ThreadCache& c, unsigned k, void* block) noexcept {
  if (budget::room_of(c, k) <= 0) {
    if (put_if_shared(c, k, block)) return;
    const uint8_t streak = note_place(c.uses[k], k, block);
    if (!delays_reuse && set_aside_if_scattered(c, k, block, streak)) return;
    do
      if (put_back(c, k, block, streak)) return;
    while (budget::room_of(c, k) <= 0);
  }
  put_into_bin(c, k, block);
  budget::change_room(c, k, -1);
}

namespace {

void* take_locked(unsigned k) noexcept SLUICE_REQUIRES(shared_cache.lock) {
  Unit* s = partial_slab(shared_cache, k);
  return s != nullptr ? slab::take_blocks(s, 1).first : nullptr;
}

}  // namespace

void* take_shared(unsigned k) noexcept {
  if (!start() || shared_cache.lock.held_by_this_thread()) return nullptr;
  counters::bump(counters::totals.foreign.late_calls);
  if (region::mutex().held_by_this_thread()) [[unlikely]] {  // as in waits_for_itself()
    if (!shared_cache.lock.try_lock()) return nullptr;
    void* const block = take_locked(k);
    shared_cache.lock.unlock();
    return block;
  }
  const MutexLock held(shared_cache.lock);
  return take_locked(k);
}

void put_shared(void* block) noexcept {
  counters::bump(counters::totals.foreign.late_calls);
  Unit* s = slab::of(block);
  const uint32_t units = s->units;
  set_next(block, nullptr);
  (void)slab::put_remote(s, block);
  slab::announce(s, units);
}

uint32_t held_blocks(const ThreadCache& c, unsigned k) noexcept {
  const Bin& bin = c.bins[k];
  const int32_t room = CacheMode::load(c.mode).has(CacheMode::Counting) ? c.gated_room[k] : bin.room;
  const int32_t in_bin = bin.head != nullptr ? bin.cap - room : 0;
  uint32_t set_aside = 0;
  for (uint32_t i = 0; i < c.scattered_count.load(std::memory_order_acquire); ++i)
    if (class_bytes()[unit_index_of(c.scattered[i])] == class_byte_of(k)) ++set_aside;
  return static_cast<uint32_t>(in_bin + c.spare_count[k]) + set_aside;
}

void add_delayed_blocks(const ThreadCache& c, uint32_t (&blocks)[size_class_count]) noexcept {
  for (unsigned k = 1; delays_reuse && k < size_class_count; ++k)
    blocks[k] += static_cast<uint32_t>(hardened::delayed_blocks(c, k));
  for_each_waiting(c, [&blocks](const WaitingBlock& slot) {
    const WaitingBlock waiting = WaitingBlock::load(slot);  // its thread may be at it
    const unsigned k = waiting ? class_bytes()[unit_index_of(waiting.block())] / bin_stride : 0;
    if (k != 0 && k < size_class_count) ++blocks[k];
  });
}

}  // namespace sluice::cache
