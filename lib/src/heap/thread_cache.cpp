// How a cache is filled and flushed. See thread_cache.hpp; how it comes and goes with its thread: thread_life.cpp.
#include "heap/thread_cache.hpp"

#include "base/check.hpp"
#include "base/options.hpp"
#include "heap/announce.hpp"
#include "heap/block_state.hpp"
#include "heap/counters.hpp"
#include "heap/link.hpp"
#include "heap/reuse.hpp"
#include "heap/slab.hpp"
#include "heap/sparse.hpp"
#include "heap/thread_life.hpp"
#include "heap/validate.hpp"
#include "pages/quarantine.hpp"
#include "pages/region.hpp"

namespace sluice::cache {

constinit std::atomic<const ArenaHooks*> arena_hooks{nullptr};
constinit ThreadCache shared_cache{};

namespace {

using slab::BlockList;

constexpr size_t first_cap_bytes = 4096;              // what a bin holds before it is first flushed, in bytes…
constexpr int32_t first_cap_most = 64;                // …and in blocks
constexpr int32_t cap_most = 512;                     // blocks in a list however large the option is
constexpr size_t scattered_size = 2048;               // bytes; larger blocks are not set aside
constexpr uint8_t orderly_streak = 3;                 // blocks side by side that make an order
constexpr unsigned slow_calls_per_validation = 4096;  // in checked builds
constexpr unsigned slow_calls_per_tick = 16;          // refills and flushes between two looks at the clock
constexpr unsigned slow_calls_per_sweep = 256;        // and at the stack arenas of threads that have ended
constexpr uint32_t budget_at_first = 128;             // KiB that all classes of a thread keep together at first…
constexpr uint32_t budget_step = 4;                   // …and more for each class that was evicted too early…
constexpr uint32_t budget_part = 64;                  // …and a part of what it is,
constexpr uint32_t soon = 256;                        // which is needed again before so many more slow calls
constexpr uint32_t idle_after = slow_calls_per_tick * (size_class_count - 1);  // slow calls without a sign of use

int32_t& room_of(ThreadCache& c, unsigned k) noexcept {
  return CacheMode::load(c.mode).has(CacheMode::Counting) ? c.gated_room[k] : c.bins[k].room;
}

int32_t clamp(size_t value, int32_t low, int32_t high) noexcept {
  if (value < static_cast<size_t>(low)) return low;
  return value > static_cast<size_t>(high) ? high : static_cast<int32_t>(value);
}
int32_t most_cap(unsigned k) noexcept {
  return clamp(options.cache / 2 / class_sizes[k], 1, cap_most);
}

// What SLUICE_CACHE allows all classes together, in KiB.
uint32_t most_budget() noexcept {
  return static_cast<uint32_t>(options.cache >> 10) * (size_class_count - 1);
}

}  // namespace

int32_t first_cap(unsigned k) noexcept {
  const int32_t cap = clamp(first_cap_bytes / class_sizes[k], 1, first_cap_most);
  return cap < most_cap(k) ? cap : most_cap(k);
}

uint32_t first_budget() noexcept {
  return budget_at_first < most_budget() ? budget_at_first : most_budget();
}

namespace {

// Slabs of other threads that blocks were freed into, so that each is queued on its owner once for a batch.
class Announcements {
 public:
  // Requires: the slab holds a block of the caller's still.
  void add(Unit* s) noexcept {
    Entry& entry = entries_[region::index_of(s) % count];
    if (entry.slab == s) return;
    if (entry.slab != nullptr) slab::announce(entry.slab, entry.units);
    entry = {s, s->units};
  }
  ~Announcements() {
    for (const Entry& entry : entries_)
      if (entry.slab != nullptr) slab::announce(entry.slab, entry.units);
  }
  Announcements() noexcept = default;
  Announcements(const Announcements&) = delete;
  Announcements& operator=(const Announcements&) = delete;

 private:
  static constexpr unsigned count = 32;
  struct Entry {
    Unit* slab;
    uint32_t units;
  };
  Entry entries_[count]{};
};

// Gives a list of blocks back to their slabs. Says whether most runs were of slabs that this cache owns. Requires
// c.lock.
bool flush_list(ThreadCache& c, void* block) noexcept SLUICE_REQUIRES(c.lock) {
  Announcements announcements;
  int32_t balance = 0;
  while (block != nullptr) {
    Unit* s = slab::of(block);
    if (s->owner.load(std::memory_order_relaxed) == &c) {
      block = slab::put_blocks(s, block).rest;
      ++balance;
    } else {
      announcements.add(s);
      block = slab::put_remote(s, block).rest;
      --balance;
    }
  }
  return balance > 0;
}

void flush_bin(ThreadCache& c, unsigned k) noexcept SLUICE_REQUIRES(c.lock) {
  Bin& bin = c.bins[k];
  void* head = bin.head;
  void* spare = c.spare[k];
  bin.head = c.spare[k] = nullptr;
  c.spare_count[k] = 0;
  if (head != nullptr) (void)flush_list(c, head);
  if (spare != nullptr) (void)flush_list(c, spare);
  c.kept_kib -= c.uses[k].kept_kib;
  c.uses[k].kept_kib = 0;
  // The free of the program's last block of the class finds it full; see weigh.
  const uint32_t others = c.uses[k].used.load(std::memory_order_relaxed) - 1;
  room_of(c, k) = bin.cap = others < c.uses[k].earned ? static_cast<int32_t>(others) : c.uses[k].earned;
}

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

// The budget. A class whose blocks the program has all freed keeps all that is carved of its slabs: a few cached blocks
// keep whole slabs in memory. While the budget allows, that much is counted for every class, and nothing else happens.
//
// Beyond it a class in use counts for what its lists hold, but for as much as a bin may hold at first, and its bin has
// room for all but one of the blocks that the program has: the free of the last one is seen (put_back_late). When all
// together keep more than the budget, the classes used least recently are evicted: their lists are flushed, and empty
// slabs are destroyed. One that comes back soon was evicted too early, and the budget grows. It shrinks by what lies
// idle (age_next_bin), and begins anew when the thread is asked to flush.

uint32_t to_kib(uint32_t blocks, unsigned k) noexcept {
  return static_cast<uint32_t>((size_t{blocks} * class_sizes[k] + 1023) >> 10);
}

void count_kept(ThreadCache& c, unsigned k, uint32_t kib) noexcept {
  c.kept_kib += kib - c.uses[k].kept_kib;
  c.uses[k].kept_kib = kib;
}

void set_cap(ThreadCache& c, unsigned k, int32_t cap) noexcept {
  room_of(c, k) += cap - c.bins[k].cap;
  c.bins[k].cap = cap;
}

// Effects: finds out what the class keeps, and bounds its bin. `at_hand` blocks of it, 0 or 1, are about to be put
// back. Requires c.lock, the cache's thread.
void weigh(ThreadCache& c, unsigned k, int32_t at_hand) noexcept SLUICE_REQUIRES(c.lock) {
  const ClassUse& all = c.uses[k];
  const int32_t length = c.bins[k].cap - room_of(c, k);
  const int32_t held = length + c.spare_count[k];
  const int32_t live = static_cast<int32_t>(all.used.load(std::memory_order_relaxed)) - held - at_hand;
  if (live <= 0) {  // or its lists hold blocks of other threads
    count_kept(c, k, to_kib(all.carved > static_cast<uint32_t>(held) ? all.carved : static_cast<uint32_t>(held), k));
    return set_cap(c, k, c.uses[k].earned);
  }
  count_kept(c, k, held > first_cap(k) ? to_kib(static_cast<uint32_t>(held - first_cap(k)), k) : 0);
  // Of those that are live some may lie among the scattered blocks.
  const int32_t surely = live - static_cast<int32_t>(c.scattered_count.load(std::memory_order_relaxed)) - 1 + at_hand;
  const int32_t bound = length + (surely > 0 ? surely : 0);
  set_cap(c, k, bound < c.uses[k].earned ? bound : c.uses[k].earned);
}

// Effects: as weigh, for a class in use, unless the budget allows that it keeps all.
inline void weigh_in_use(ThreadCache& c, unsigned k, int32_t at_hand) noexcept SLUICE_REQUIRES(c.lock) {
  c.uses[k].used_at = c.slow_calls;
  const uint32_t most = to_kib(c.uses[k].carved, k);
  if (c.kept_kib - c.uses[k].kept_kib + most > c.budget_kib) return weigh(c, k, at_hand);
  count_kept(c, k, most);
  set_cap(c, k, c.uses[k].earned);
}

// Gives back all that the class keeps. Requires c.lock.
void evict(ThreadCache& c, unsigned k) noexcept SLUICE_REQUIRES(c.lock) {
  if (delays_reuse) flush_delayed(c, k);
  flush_bin(c, k);
  slab::destroy_empty(c, k);
  c.uses[k].evicted_at = c.slow_calls;
}

// Says whether the class keeps anything that may be evicted; notes it if it was in use since the last look.
bool look_at(ThreadCache& c, unsigned k) noexcept {
  const Bin& bin = c.bins[k];
  const uint32_t delayed = delays_reuse ? hardened::delayed_mark(c, k) : 0;
  if (bin.head == nullptr && c.spare[k] == nullptr && delayed == 0 && c.uses[k].kept_kib == 0) return false;
  const auto look = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(bin.head) >> 4) * 31 +
                    static_cast<uint32_t>(room_of(c, k)) + delayed * 0x10001;
  if (c.seen[k] == look) return true;
  c.seen[k] = look;
  c.uses[k].used_at = c.slow_calls;
  return true;
}

// Looks at one class. What lies idle goes back, and the bin is as small again as at first.
void age_next_bin(ThreadCache& c, unsigned busy) noexcept {
  c.next_seen = c.next_seen + 1 < size_class_count ? c.next_seen + 1 : 1;
  const unsigned k = c.next_seen;
  if (k == busy || !look_at(c, k) || c.slow_calls - c.uses[k].used_at < idle_after) return;
  const uint32_t excess = c.budget_kib > first_budget() ? c.budget_kib - first_budget() : 0;
  c.budget_kib -= c.uses[k].kept_kib < excess ? c.uses[k].kept_kib : excess;
  c.uses[k].earned = static_cast<uint16_t>(first_cap(k));
  const CacheLock held(c.lock);
  evict(c, k);
}

// Evicts classes until what they keep is within the budget. `busy` is spared.
__attribute__((noinline, cold)) void keep_to_budget(ThreadCache& c, unsigned busy) noexcept {
  while (c.kept_kib > c.budget_kib) {
    unsigned oldest = 0;
    for (unsigned k = 1; k < size_class_count; ++k) {
      if (k == busy || c.uses[k].kept_kib == 0 || !look_at(c, k)) continue;
      const uint32_t age = c.slow_calls - c.uses[k].used_at;
      const uint32_t most = c.slow_calls - c.uses[oldest].used_at;
      if (oldest == 0 || age > most || (age == most && c.uses[k].kept_kib > c.uses[oldest].kept_kib)) oldest = k;
    }
    if (oldest == 0) return;
    const CacheLock held(c.lock);
    const uint32_t before = c.uses[oldest].kept_kib;
    weigh(c, oldest, 0);  // calls that take no slow path may have changed it
    if (c.uses[oldest].kept_kib >= before) evict(c, oldest);
  }
}

// A class is needed again after it was evicted.
void note_return(ThreadCache& c, unsigned k) noexcept {
  const uint32_t more = budget_step + c.budget_kib / budget_part;
  if (c.slow_calls - c.uses[k].evicted_at < soon && c.budget_kib + more <= most_budget()) c.budget_kib += more;
  c.uses[k].evicted_at = 0;
}

}  // namespace

namespace {

// Frees blocks that lie anywhere into the slabs of other caches.
__attribute__((noinline)) void put_scattered_remote(void* const* blocks, uint32_t count) noexcept {
  Announcements announcements;
  for (uint32_t i = 0; i < count; ++i) {
    Unit* const s = slab::of(blocks[i]);
    set_next(blocks[i], nullptr);
    announcements.add(s);
    (void)slab::put_remote(s, blocks[i]);
  }
}

// Puts the scattered blocks into their slabs. Requires c.lock.
__attribute__((noinline)) void flush_scattered(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock) {
  const uint32_t others = slab::put_scattered(c, c.scattered, c.scattered_count.load(std::memory_order_relaxed));
  if (others != 0) put_scattered_remote(c.scattered, others);
  c.scattered_count.store(0, std::memory_order_release);
}

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
    flush_bin(c, k);
  flush_scattered(c);
  slab::collect_pending(c);
  slab::destroy_empty(c);
}

namespace {

constinit std::atomic<uint32_t> flushes_asked{0};

// All but the class that its caller is about to use.
__attribute__((noinline, cold)) void flush_as_asked(ThreadCache& c, uint32_t asked, unsigned busy) noexcept {
  c.flushes_seen = asked;
  c.budget_kib = first_budget();
  const CacheLock held(c.lock);
  for (unsigned k = 1; k < size_class_count; ++k) {
    if (k == busy) continue;
    if (delays_reuse) flush_delayed(c, k);
    flush_bin(c, k);
  }
  flush_scattered(c);
  slab::collect_pending(c);
  slab::destroy_empty(c);
}

}  // namespace

void ask_for_flushes() noexcept {
  flushes_asked.fetch_add(1, std::memory_order_relaxed);
}

void tick(ThreadCache& c, unsigned busy) noexcept {
  ++c.slow_calls;
  const uint32_t asked = flushes_asked.load(std::memory_order_relaxed);
  if (asked != c.flushes_seen) [[unlikely]]
    flush_as_asked(c, asked, busy);
  if (c.kept_kib > c.budget_kib) [[unlikely]]
    keep_to_budget(c, busy);
  if (sparse::is_due(c)) [[unlikely]] {
    const CacheLock held(c.lock);
    sparse::look(c);
  }
  if (c.slow_calls % slow_calls_per_tick == 0) {
    age_next_bin(c, busy);
    if (quarantines_spans) quarantine::purge_aged();
    region::purge_aged();
  }
  if (c.slow_calls % slow_calls_per_sweep == 0) {
    sweep_orphans();
    if (c.arena != nullptr) hooks().tick(c);
  }
  if (checked && c.slow_calls % slow_calls_per_validation == 0) {
    const heap::Validation found = heap::validate();
    if (found.outcome == heap::Validation::Wrong) fail_check(found.what, &c);
  }
}

namespace {

// A slab of the class that has blocks to give, in c's partial list. Requires c.lock.
Unit* partial_slab(ThreadCache& c, unsigned k) noexcept SLUICE_REQUIRES(c.lock) {
  if (c.pending.load(std::memory_order_relaxed) != unit_index_none) slab::collect_pending(c);
  if (c.partial[k] == unit_index_none && c.scattered_count.load(std::memory_order_relaxed) != 0) flush_scattered(c);
  if (c.partial[k] != unit_index_none) return region::unit_at(c.partial[k]);
  if (Unit* s = steal(c, k)) return s;
  return slab::create(c, k);
}

// Fills an empty bin. All of it happens under the lock, so that a fork never finds the lists half changed.
__attribute__((noinline)) bool refill(ThreadCache& c, unsigned k) noexcept {
  Bin& bin = c.bins[k];
  {
    const CacheLock held(c.lock);
    bin.cap = c.uses[k].earned;
    if (c.spare[k] != nullptr) {
      bin.head = c.spare[k];
      room_of(c, k) = bin.cap - c.spare_count[k];
      c.spare[k] = nullptr;
      c.spare_count[k] = 0;
      weigh_in_use(c, k, 0);
      return true;
    }
    if (c.uses[k].evicted_at != 0) [[unlikely]]
      note_return(c, k);
    Unit* s = partial_slab(c, k);
    if (s == nullptr) {
      room_of(c, k) = bin.cap;
      return false;
    }
    const BlockList blocks = slab::take_blocks(s, static_cast<uint32_t>(bin.cap));
    bin.head = blocks.first;
    room_of(c, k) = bin.cap - static_cast<int32_t>(blocks.count);
    weigh_in_use(c, k, 0);
  }
  tick(c, k);
  return true;
}

// Makes room in a full bin: its list becomes the spare one, and the spare one goes back to the slabs. The bin grows,
// since it is worth it: see put_back.
void make_room(ThreadCache& c, unsigned k) noexcept {
  Bin& bin = c.bins[k];
  {
    const CacheLock held(c.lock);
    void* const old = c.spare[k];
    c.spare[k] = bin.head;
    c.spare_count[k] = bin.cap - room_of(c, k);
    bin.head = nullptr;
    // Blocks of other threads are of more use there than here: they do not make the bin grow.
    const int32_t most = most_cap(k);
    const int32_t cap = c.uses[k].earned;
    if (old != nullptr && flush_list(c, old) && cap < most)
      c.uses[k].earned = static_cast<uint16_t>(cap * 2 < most ? cap * 2 : most);
    room_of(c, k) = bin.cap = c.uses[k].earned;
    weigh_in_use(c, k, 1);
  }
  tick(c, k);
}

// Whether the block that comes to a full bin may be the last one of its class that the program has: the others may all
// lie among the scattered ones.
bool may_be_last(const ThreadCache& c, unsigned k) noexcept SLUICE_UNCHECKED_LOCKS {
  const uint32_t live =
      c.uses[k].used.load(std::memory_order_relaxed) - static_cast<uint32_t>(c.bins[k].cap + c.spare_count[k]);
  return live - 1 <= c.scattered_count.load(std::memory_order_relaxed);
}

// As put_back, for a block that may be the last; see weigh.
__attribute__((noinline)) bool put_back_late(ThreadCache& c, unsigned k, void* block) noexcept {
  {
    const CacheLock held(c.lock);
    if (c.scattered_count.load(std::memory_order_relaxed) != 0) flush_scattered(c);
    weigh_in_use(c, k, 1);
    if (c.uses[k].kept_kib > c.budget_kib) {  // more than all classes may keep: the others need not go for it
      set_next(block, nullptr);
      (void)flush_list(c, block);
      evict(c, k);
      c.uses[k].evicted_at = 0;
      return true;
    }
  }
  if (room_of(c, k) > 0)
    tick(c, k);
  else
    make_room(c, k);
  return false;
}

// A block comes to a full bin. Blocks that come back one beside the other go through the cache: a flush then costs
// little and brings order. A block that lies far from the last is most likely not in the processor's caches: it is set
// aside without being touched. Says whether it was; if not, the bin has room now.
inline __attribute__((always_inline)) bool put_back(ThreadCache& c, unsigned k, void* block) noexcept {
  const auto unit = static_cast<uint32_t>(unit_index_of(block));
  uint8_t& streak = c.uses[k].overflow_streak;
  streak = unit == c.uses[k].overflow_unit ? static_cast<uint8_t>(streak + 1) : 0;
  c.uses[k].overflow_unit = unit;
  if (c.bins[k].cap < c.uses[k].earned || may_be_last(c, k)) return put_back_late(c, k, block);
  if (c.spare[k] == nullptr || streak >= orderly_streak || class_sizes[k] > scattered_size) {
    streak = 0;
    make_room(c, k);
    return false;
  }
  if (c.scattered_count.load(std::memory_order_relaxed) == scattered_capacity) {
    {
      const CacheLock held(c.lock);
      flush_scattered(c);
    }
    tick(c, k);
  }
  const uint32_t count = c.scattered_count.load(std::memory_order_relaxed);
  c.scattered[count] = block;
  c.scattered_count.store(count + 1, std::memory_order_release);
  return true;
}

}  // namespace

// A signal handler that comes at the end of a refill may take all that it brought, and one at the end of a flush may
// use up the room: each looks again.
void* take(ThreadCache& c, unsigned k) noexcept {
  Bin& bin = c.bins[k];
  void* block;
  while ((block = bin.head) == nullptr)
    if (!refill(c, k)) return nullptr;
  bin.head = next_of(block);
  keep_order();
  ++room_of(c, k);
  return block;
}

void put_full(ThreadCache& c, unsigned k, void* block) noexcept {
  Bin& bin = c.bins[k];
  do
    if (put_back(c, k, block)) return;
  while (bin.room <= 0);
  set_next(block, bin.head);
  keep_order();
  bin.head = block;
  --bin.room;
}

void put(ThreadCache& c, unsigned k, void* block) noexcept {
  while (room_of(c, k) <= 0)
    if (put_back(c, k, block)) return;
  Bin& bin = c.bins[k];
  set_next(block, bin.head);
  keep_order();
  bin.head = block;
  --room_of(c, k);
}

void* take_shared(unsigned k) noexcept {
  if (!start() || shared_cache.lock.held_by_this_thread()) return nullptr;
  counters::bump(counters::totals.foreign.late_calls);
  const MutexLock held(shared_cache.lock);
  Unit* s = partial_slab(shared_cache, k);
  return s != nullptr ? slab::take_blocks(s, 1).first : nullptr;
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
