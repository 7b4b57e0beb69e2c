// See thread_cache.hpp.
#include "heap/thread_cache.hpp"

#include "base/check.hpp"
#include "base/options.hpp"
#include "heap/counters.hpp"
#include "heap/guarded.hpp"
#include "heap/hardened.hpp"
#include "heap/heap.hpp"
#include "heap/quarantine.hpp"
#include "heap/region.hpp"
#include "heap/sampling.hpp"
#include "heap/slab.hpp"
#include "heap/validate.hpp"
#include "os/memory.hpp"

namespace sluice {

constinit ThreadCache cache_not_started{};
constinit ThreadCache cache_torn_down{};
constinit thread_local ThreadCache* thread_cache __attribute__((tls_model("initial-exec"))) = &cache_not_started;

namespace cache {

constinit std::atomic<const ArenaHooks*> arena_hooks{nullptr};

namespace {

using slab::BlockList;

constexpr size_t first_cap_bytes = 4096;           // what a bin holds before it is first flushed, in bytes…
constexpr int32_t first_cap_most = 64;             // …and in blocks
constexpr int32_t cap_most = 512;                  // blocks in a list however large the option is
constexpr size_t orphan_cache_bytes = 192 * 1024;  // an orphan keeps its cache for the next thread if it is this small…
constexpr size_t orphans_with_cache = 8;           // …and there are not many others
constexpr size_t scattered_size = 2048;            // bytes; larger blocks are not set aside
constexpr uint8_t orderly_streak = 3;              // blocks side by side that make an order
constexpr unsigned steal_tries = 8;                // orphans looked through for a slab
constexpr unsigned slow_calls_per_validation = 4096;  // in checked builds
constexpr unsigned slow_calls_per_tick = 16;          // refills and flushes between two looks at the clock
constexpr unsigned slow_calls_per_sweep = 256;        // and at the stack arenas of threads that have ended

// Slabs of blocks that are taken and freed without a cache. Its lock is the only one taken on a thread that is past its
// end.
constinit ThreadCache shared_cache{};

struct Registry {
  Mutex lock;
  std::atomic<ThreadCache*> all{&shared_cache};
  ThreadCache* orphans = nullptr;
  std::atomic<size_t> orphan_count{0};
  size_t live = 0, peak = 0, started = 0, made = 0;
};
constinit Registry registry;
constinit std::atomic<bool> counting_on{false};
constinit std::atomic<bool> options_missing{false};  // the heap started before the environment was there

enum StartState : uint32_t { NotStarted, Starting, HeapReady, Started };
constinit std::atomic<uint32_t> start_state{NotStarted};
constinit std::atomic<const void*> starter{nullptr};  // identifies the thread that starts the heap
constinit std::atomic<bool> ends_are_told{false};     // end_thread is registered with the system

int32_t& room_of(ThreadCache& c, unsigned k) noexcept {
  return c.gated ? c.gated_room[k] : c.bins[k].room;
}

int32_t clamp(size_t value, int32_t low, int32_t high) noexcept {
  if (value < static_cast<size_t>(low)) return low;
  return value > static_cast<size_t>(high) ? high : static_cast<int32_t>(value);
}
int32_t most_cap(unsigned k) noexcept {
  return clamp(options.cache / 2 / class_sizes[k], 1, cap_most);
}

int32_t first_cap(unsigned k) noexcept {
  const int32_t cap = clamp(first_cap_bytes / class_sizes[k], 1, first_cap_most);
  return cap < most_cap(k) ? cap : most_cap(k);
}

using CacheGuard = MutexGuard<OwnerMutex>;

// Requires: there is an arena.
const ArenaHooks& hooks() noexcept {
  return *arena_hooks.load(std::memory_order_acquire);
}

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
bool flush_list(ThreadCache& c, void* block) noexcept {
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

// Gives back what other threads freed into the stack arenas of threads that have ended.
__attribute__((noinline, cold)) void sweep_orphans() noexcept {
  if (arena_hooks.load(std::memory_order_relaxed) == nullptr ||
      registry.orphan_count.load(std::memory_order_relaxed) == 0 || !registry.lock.try_lock())
    return;
  for (ThreadCache* o = registry.orphans; o != nullptr; o = o->next_orphan) {
    if (o->arena == nullptr || !o->lock.try_lock()) continue;
    hooks().give_back_orphaned(*o);
    o->lock.unlock();
  }
  registry.lock.unlock();
}

void flush_bin(ThreadCache& c, unsigned k) noexcept {
  Bin& bin = c.bins[k];
  void* head = bin.head;
  void* spare = c.spare[k];
  bin.head = c.spare[k] = nullptr;
  c.spare_count[k] = 0;
  room_of(c, k) = bin.cap;
  if (head != nullptr) (void)flush_list(c, head);
  if (spare != nullptr) (void)flush_list(c, spare);
}

// Looks at one bin. If it has not changed since the last time, what it holds lies idle: it goes back, since a few
// blocks may keep many slabs, and the bin is as small again as at first.
void age_next_bin(ThreadCache& c, unsigned busy) noexcept {
  c.next_seen = c.next_seen + 1 < size_class_count ? c.next_seen + 1 : 1;
  const unsigned k = c.next_seen;
  Bin& bin = c.bins[k];
  if (k == busy) return;  // its caller is about to use it
  if (bin.head == nullptr && c.spare[k] == nullptr) return;
  const auto look =
      static_cast<uint32_t>(reinterpret_cast<uintptr_t>(bin.head) >> 4) * 31 + static_cast<uint32_t>(room_of(c, k));
  if (c.seen[k] != look) {
    c.seen[k] = look;
    return;
  }
  const CacheGuard guard(c.lock);
  flush_bin(c, k);
  bin.cap = room_of(c, k) = first_cap(k);
}

// After every refill and flush of a bin, outside of all locks.
void tick(ThreadCache& c, unsigned busy) noexcept {
  ++c.slow_calls;
  if (c.slow_calls % slow_calls_per_tick == 0) {
    age_next_bin(c, busy);
    region::purge_aged();
  }
  if (c.slow_calls % slow_calls_per_sweep == 0) {
    sweep_orphans();
    if (c.arena != nullptr) hooks().tick(c);
  }
  if (checked && c.slow_calls % slow_calls_per_validation == 0) {
    if (const char* wrong = heap::validate()) fail_check(wrong, &c);
  }
}

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
__attribute__((noinline)) void flush_scattered(ThreadCache& c) noexcept {
  const uint32_t others = slab::put_scattered(c, c.scattered, c.scattered_count.load(std::memory_order_relaxed));
  if (others != 0) put_scattered_remote(c.scattered, others);
  c.scattered_count.store(0, std::memory_order_release);
}

// Calls act(slot) for the slots of a quarantine that hold a block. In other builds there are none.
template <typename Cache, typename Act>
void for_each_quarantined([[maybe_unused]] Cache& c, [[maybe_unused]] Act act) noexcept {
  if constexpr (secure) {
    for (auto& slot : c.secure_part.small)
      if (slot != nullptr) act(slot);
    for (auto& slot : c.secure_part.medium)
      if (slot != nullptr) act(slot);
  }
}

// Requires c.lock.
void flush_all(ThreadCache& c) noexcept {
  for_each_quarantined(c, [&c](void*& slot) {
    void* const block = slot;
    slot = nullptr;
    if (*static_cast<const uintptr_t*>(block) != 0) return (void)link_detail::report_damaged_link(block);
    set_next(block, nullptr);
    (void)flush_list(c, block);
  });
  for (unsigned k = 1; k < size_class_count; ++k)
    flush_bin(c, k);
  flush_scattered(c);
  slab::collect_pending(c);
  slab::destroy_empty(c);
}

// A slab of the class that a thread left behind. Requires c.lock.
Unit* steal(ThreadCache& c, unsigned k) noexcept {
  if (registry.orphan_count.load(std::memory_order_relaxed) == 0 || !registry.lock.try_lock()) return nullptr;
  Unit* found = nullptr;
  unsigned tries = 0;
  for (ThreadCache* o = registry.orphans; o != nullptr && found == nullptr && tries < steal_tries;
       o = o->next_orphan, ++tries) {
    if (!o->lock.try_lock()) continue;
    slab::collect_pending(*o);
    if (o->partial[k] != unit_index_none) {
      found = region::unit_at(o->partial[k]);
      slab::change_owner(found, c);
    }
    o->lock.unlock();
  }
  registry.lock.unlock();
  return found;
}

// A slab of the class that has blocks to give, in c's partial list. Requires c.lock.
Unit* partial_slab(ThreadCache& c, unsigned k) noexcept {
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
    const CacheGuard guard(c.lock);
    if (c.spare[k] != nullptr) {
      bin.head = c.spare[k];
      room_of(c, k) = bin.cap - c.spare_count[k];
      c.spare[k] = nullptr;
      c.spare_count[k] = 0;
      return true;
    }
    Unit* s = partial_slab(c, k);
    if (s == nullptr) return false;
    const BlockList blocks = slab::take_blocks(s, static_cast<uint32_t>(bin.cap));
    bin.head = blocks.first;
    room_of(c, k) = bin.cap - static_cast<int32_t>(blocks.count);
  }
  tick(c, k);
  return true;
}

// Makes room in a full bin: its list becomes the spare one, and the spare one goes back to the slabs. The bin grows,
// since it is worth it: see put_back.
void make_room(ThreadCache& c, unsigned k) noexcept {
  Bin& bin = c.bins[k];
  {
    const CacheGuard guard(c.lock);
    void* const old = c.spare[k];
    c.spare[k] = bin.head;
    c.spare_count[k] = bin.cap - room_of(c, k);
    bin.head = nullptr;
    // Blocks of other threads are of more use there than here: they do not make the bin grow.
    const int32_t most = most_cap(k);
    if (old != nullptr && flush_list(c, old) && bin.cap < most) bin.cap = bin.cap * 2 < most ? bin.cap * 2 : most;
    room_of(c, k) = bin.cap;
  }
  tick(c, k);
}

// A block comes to a full bin. Blocks that come back one beside the other go through the cache: a flush then costs
// little and brings order. A block that lies far from the last is most likely not in the processor's caches: it is set
// aside without being touched. Says whether it was; if not, the bin has room now.
inline __attribute__((always_inline)) bool put_back(ThreadCache& c, unsigned k, void* block) noexcept {
  const auto unit = static_cast<uint32_t>(unit_index_of(block));
  uint8_t& streak = c.overflow_streak[k];
  streak = unit == c.overflow_unit[k] ? static_cast<uint8_t>(streak + 1) : 0;
  c.overflow_unit[k] = unit;
  if (c.spare[k] == nullptr || streak >= orderly_streak || class_sizes[k] > scattered_size) {
    streak = 0;
    make_room(c, k);
    return false;
  }
  if (c.scattered_count.load(std::memory_order_relaxed) == scattered_capacity) {
    {
      const CacheGuard guard(c.lock);
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

void set_small_limit(ThreadCache& c) noexcept {
  c.small_limit = c.gated || c.routing || c.sampled ? 0 : max_direct_size + 1;
  c.sampled_limit = c.sampled && !c.gated && !c.routing ? max_direct_size + 1 : 0;
}

namespace {

// Opens or shuts the gate that leads every call of this cache through the slow path.
void set_gate(ThreadCache& c, bool shut) noexcept {
  if (c.gated == shut) return;
  for (unsigned k = 1; k < size_class_count; ++k) {
    if (shut) {
      c.gated_room[k] = c.bins[k].room;
      c.bins[k].room = 0;
    } else {
      c.bins[k].room = c.gated_room[k];
    }
  }
  c.gated = shut;
  set_small_limit(c);
  if (c.arena != nullptr) hooks().gate_changed(c);
}

ThreadCache* create() noexcept {
  void* memory = region::allocate_metadata(sizeof(ThreadCache));
  if (secure && memory == nullptr && quarantine::release_all()) memory = region::allocate_metadata(sizeof(ThreadCache));
  if (memory == nullptr) return nullptr;
  auto* const c = static_cast<ThreadCache*>(memory);
  for (size_t i = 0; i <= max_direct_size / min_alignment; ++i)
    c->bin_of[i] = class_byte_of(size_class_of(i * min_alignment));
  for (unsigned k = 1; k < size_class_count; ++k) {
    c->bins[k].cap = c->bins[k].room = first_cap(k);
  }
  c->small_limit = max_direct_size + 1;
  c->random = os::random_bits() ^ reinterpret_cast<uintptr_t>(c) ^ 1;
  c->attached = true;
  return c;
}

size_t held_bytes(const ThreadCache& c) noexcept {
  size_t bytes = 0;
  for (unsigned k = 1; k < size_class_count; ++k)
    bytes += size_t{held_blocks(c, k)} * class_sizes[k];
  return bytes;
}

void push_orphan(ThreadCache& c) noexcept {
  if (c.orphan.load(std::memory_order_relaxed)) return;  // a fork in a signal handler has done it already
  // Sequentially consistent: pairs with put_remote, see there.
  c.orphan.store(true, std::memory_order_seq_cst);
  c.next_orphan = registry.orphans;
  registry.orphans = &c;
  registry.orphan_count.fetch_add(1, std::memory_order_relaxed);
  --registry.live;
}

// Runs at the end of each thread that has asked for it, as a destructor of thread-specific data. The first round only
// asks for another one, so that the destructors of the program still find a cache.
void end_thread(void* value) noexcept {
  ThreadCache& c = *thread_cache;
  if (!c.attached) return;  // it has asked, and found no memory for a cache
  if (!c.ending) {
    c.ending = true;
    if (os::arm_thread_exit(value)) return;
  }
  thread_cache = &cache_torn_down;
  {
    const CacheGuard guard(c.lock);
    if (c.arena != nullptr) hooks().end_thread(c);
    const bool keep = registry.orphan_count.load(std::memory_order_relaxed) < orphans_with_cache &&
                      held_bytes(c) <= orphan_cache_bytes;
    if (keep)
      slab::collect_pending(c);
    else
      flush_all(c);
  }
  registry.lock.lock();
  push_orphan(c);
  registry.lock.unlock();
  if (c.pending.load(std::memory_order_seq_cst) != unit_index_none && c.lock.try_lock()) {
    slab::collect_pending(c);
    slab::destroy_empty(c);
    c.lock.unlock();
  }
}

// Starts the heap once. False when it could not be started; the next call tries again.
bool start() noexcept {
  if (start_state.load(std::memory_order_acquire) == Started) return true;
  if (heap::stands_aside()) return false;
  for (;;) {
    uint32_t seen = NotStarted;
    if (start_state.compare_exchange_strong(seen, Starting, std::memory_order_acquire)) break;
    if (seen == Started) return true;
    // The calls below may allocate: this thread goes on with the heap as it is.
    if (starter.load(std::memory_order_relaxed) == &thread_cache) return seen == HeapReady;
    os::yield();
  }
  starter.store(&thread_cache, std::memory_order_relaxed);
  const bool options_read = read_options();
  options_missing.store(!options_read, std::memory_order_relaxed);
  if (!region::initialize()) {
    starter.store(nullptr, std::memory_order_relaxed);
    start_state.store(NotStarted, std::memory_order_release);
    return false;
  }
  if constexpr (secure) hardened::start();
  // Until the options can be read everything is counted, so that counts are exact if they are wanted.
  set_counting(!options_read || options_want_statistics());
  start_state.store(HeapReady, std::memory_order_release);
  os::register_fork_handlers(lock_all, unlock_all, unlock_all_in_child);
  starter.store(nullptr, std::memory_order_relaxed);
  start_state.store(Started, std::memory_order_release);  // pairs with the loads above
  return true;
}

// Asks for a call of end_thread when this thread ends. False when the system refuses; it may no longer do so later.
bool ask_for_end() noexcept {
  const heap::KeepErrno keep;
  if (!ends_are_told.load(std::memory_order_acquire)) {
    const MutexGuard guard(registry.lock);
    if (!ends_are_told.load(std::memory_order_relaxed))
      ends_are_told.store(os::register_thread_exit(end_thread), std::memory_order_release);
    if (!ends_are_told.load(std::memory_order_relaxed)) return false;
  }
  return os::arm_thread_exit(&thread_cache);
}

// A cache for a thread, in use from now on: the orphan that ended last, or a new one. Null when there is no memory.
ThreadCache* adopt_or_create() noexcept {
  const MutexGuard guard(registry.lock);
  ThreadCache* c = registry.orphans;
  if (c != nullptr) {
    registry.orphans = c->next_orphan;
    registry.orphan_count.fetch_sub(1, std::memory_order_relaxed);
    c->orphan.store(false, std::memory_order_seq_cst);
  } else {
    c = create();
    if (c == nullptr) return nullptr;
    c->next_cache = registry.all.load(std::memory_order_relaxed);
    registry.all.store(c, std::memory_order_release);  // pairs with first()
    ++registry.made;
  }
  ++registry.started;
  if (++registry.live > registry.peak) registry.peak = registry.live;
  return c;
}

}  // namespace

void finish_start() noexcept {
  if (!start() || !options_missing.load(std::memory_order_relaxed) || !read_options()) return;
  options_missing.store(false, std::memory_order_relaxed);
  set_counting(options_want_statistics());
}

ThreadCache& attach() noexcept {
  if (thread_cache != &cache_not_started) return *thread_cache;
  if (!start() || registry.lock.held_by_this_thread()) return cache_torn_down;
  // What libc allocates meanwhile, and a signal handler, are served without a cache. What start() called may have got
  // one for this thread.
  ThreadCache* seen = &cache_not_started;
  if (!std::atomic_ref(thread_cache).compare_exchange_strong(seen, &cache_torn_down, std::memory_order_relaxed))
    return *seen;
  // A thread whose end nobody tells would take its cache along, and all that is in it: it does without.
  ThreadCache* const c = ask_for_end() ? adopt_or_create() : nullptr;
  if (c == nullptr) {
    thread_cache = &cache_not_started;
    return cache_torn_down;
  }
  const bool shut = counting();
  if (shut && c->counters == nullptr) c->counters = counters::create();
  // An orphan's lock may be held by a thread that frees into it: from here on its slabs are this thread's alone.
  c->lock.lock();
  c->ending = false;
  set_gate(*c, shut);
  sampling::attach(*c);
  set_small_limit(*c);
  c->lock.unlock();
  thread_cache = c;
  return *c;
}

void* take(ThreadCache& c, unsigned k) noexcept {
  Bin& bin = c.bins[k];
  if (bin.head == nullptr && !refill(c, k)) return nullptr;
  void* block = bin.head;
  bin.head = next_of(block);
  ++room_of(c, k);
  return block;
}

void put_full(ThreadCache& c, unsigned k, void* block) noexcept {
  if (put_back(c, k, block)) return;
  Bin& bin = c.bins[k];
  set_next(block, bin.head);
  bin.head = block;
  --bin.room;
}

void put(ThreadCache& c, unsigned k, void* block) noexcept {
  if (room_of(c, k) <= 0 && put_back(c, k, block)) return;
  Bin& bin = c.bins[k];
  set_next(block, bin.head);
  bin.head = block;
  --room_of(c, k);
}

void* take_shared(unsigned k) noexcept {
  if (!start() || shared_cache.lock.held_by_this_thread()) return nullptr;
  counters::bump(counters::totals.late_calls);
  const MutexGuard guard(shared_cache.lock);
  Unit* s = partial_slab(shared_cache, k);
  return s != nullptr ? slab::take_blocks(s, 1).first : nullptr;
}

void put_shared(void* block) noexcept {
  counters::bump(counters::totals.late_calls);
  Unit* s = slab::of(block);
  const uint32_t units = s->units;
  set_next(block, nullptr);
  (void)slab::put_remote(s, block);
  slab::announce(s, units);
}

void flush_idle() noexcept {
  if (thread_cache->lock.held_by_this_thread() || registry.lock.held_by_this_thread()) return;
  ThreadCache& own = *thread_cache;
  if (own.attached) {
    const CacheGuard guard(own.lock);
    flush_all(own);
    if (own.arena != nullptr) hooks().trim(own);
  }
  if (!shared_cache.lock.held_by_this_thread()) {
    const MutexGuard guard(shared_cache.lock);
    flush_all(shared_cache);
  }
  const MutexGuard guard(registry.lock);
  for (ThreadCache* o = registry.orphans; o != nullptr; o = o->next_orphan) {
    const MutexGuard orphan_guard(o->lock);
    flush_all(*o);
    if (o->arena != nullptr) hooks().give_back_orphaned(*o);
  }
}

ThreadCache* first() noexcept {
  return registry.all.load(std::memory_order_acquire);
}

void lock_all() noexcept {
  registry.lock.lock_for_fork();
  for (ThreadCache* c = first(); c != nullptr; c = c->next_cache)
    c->lock.lock_for_fork();
  guarded::mutex().lock_for_fork();
  region::mutex().lock_for_fork();
}

bool try_lock_all() noexcept {
  if (!registry.lock.try_lock()) return false;
  ThreadCache* c = first();
  while (c != nullptr && c->lock.try_lock())
    c = c->next_cache;
  if (c == nullptr && guarded::mutex().try_lock()) {
    if (region::mutex().try_lock()) return true;
    guarded::mutex().unlock();
  }
  for (ThreadCache* held = first(); held != c; held = held->next_cache)
    held->lock.unlock();
  registry.lock.unlock();
  return false;
}

void unlock_all() noexcept {
  region::mutex().unlock_after_fork();
  guarded::mutex().unlock_after_fork();
  for (ThreadCache* c = first(); c != nullptr; c = c->next_cache)
    c->lock.unlock_after_fork();
  registry.lock.unlock_after_fork();
}

void unlock_all_in_child() noexcept {
  for (ThreadCache* c = first(); c != nullptr; c = c->next_cache) {
    const bool has_thread = c->attached && !c->orphan.load(std::memory_order_relaxed);
    if (!has_thread || c == thread_cache) continue;
    // Its bins are whole: the thread was stopped on the fast path, which keeps them so at every step, but for `room`.
    c->from_fork = true;
    if (c->arena != nullptr) hooks().forked(*c);
    push_orphan(*c);
  }
  region::adopt_busy_spans();
  unlock_all();
}

ThreadCounts thread_counts() noexcept {
  return {registry.live, registry.peak, registry.started, registry.made};
}

uint32_t held_blocks(const ThreadCache& c, unsigned k) noexcept {
  const Bin& bin = c.bins[k];
  const int32_t room = c.gated ? c.gated_room[k] : bin.room;
  const int32_t in_bin = bin.head != nullptr ? bin.cap - room : 0;
  uint32_t set_aside = 0;
  for (uint32_t i = 0; i < c.scattered_count.load(std::memory_order_acquire); ++i)
    if (class_bytes()[unit_index_of(c.scattered[i])] == class_byte_of(k)) ++set_aside;
  return static_cast<uint32_t>(in_bin + c.spare_count[k]) + set_aside;
}

void add_quarantined(const ThreadCache& c, uint32_t (&blocks)[size_class_count]) noexcept {
  for_each_quarantined(c, [&blocks](const void* block) { ++blocks[class_bytes()[unit_index_of(block)] / bin_stride]; });
}

void set_counting(bool on) noexcept {
  counting_on.store(on, std::memory_order_relaxed);
  if (thread_cache->attached && !on) set_gate(*thread_cache, false);
}

bool counting() noexcept {
  return counting_on.load(std::memory_order_relaxed);
}

}  // namespace cache
}  // namespace sluice
