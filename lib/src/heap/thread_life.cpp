// How a thread gets its cache and leaves it at its end, and what is done to all caches: by a trim, by a snapshot, by a
// fork. See thread_cache.hpp.
#include "heap/thread_life.hpp"

#include "base/options.hpp"
#include "heap/counters.hpp"
#include "heap/guarded.hpp"
#include "heap/hardened.hpp"
#include "heap/heap.hpp"
#include "heap/quarantine.hpp"
#include "heap/region.hpp"
#include "heap/sampling.hpp"
#include "heap/slab.hpp"
#include "os/memory.hpp"

namespace sluice {

constinit ThreadCache cache_not_started{};
constinit ThreadCache cache_torn_down{};
constinit thread_local ThreadCache* thread_cache __attribute__((tls_model("initial-exec"))) = &cache_not_started;

namespace cache {
namespace {

constexpr size_t orphan_cache_bytes = 192 * 1024;  // an orphan keeps its cache for the next thread if it is this small…
constexpr size_t orphans_with_cache = 8;           // …and there are not many others
constexpr unsigned steal_tries = 8;                // orphans looked through for a slab

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

}  // namespace

void sweep_orphans() noexcept {
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

void set_small_limit(ThreadCache& c) noexcept {
  c.small_limit = c.gated || c.routing || c.sampled ? 0 : small_limit_when_open;
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
  if (secure) hardened::prepare(*c);
  c->small_limit = small_limit_when_open;
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
  if (secure) hardened::check_waiting();
  thread_cache = &cache_torn_down;
  {
    const CacheGuard guard(c.lock);
    if (c.arena != nullptr) hooks().end_thread(c);
    if (secure) flush_kept(c);
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

}  // namespace

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

void finish_start() noexcept {
  if (!start() || !options_missing.load(std::memory_order_relaxed) || !read_options()) return;
  options_missing.store(false, std::memory_order_relaxed);
  set_counting(options_want_statistics());
}

namespace {

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

void set_counting(bool on) noexcept {
  counting_on.store(on, std::memory_order_relaxed);
  if (thread_cache->attached && !on) set_gate(*thread_cache, false);
}

bool counting() noexcept {
  return counting_on.load(std::memory_order_relaxed);
}

}  // namespace cache
}  // namespace sluice
