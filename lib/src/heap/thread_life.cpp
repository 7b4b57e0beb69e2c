// How a thread gets its cache and leaves it at its end. See thread_cache.hpp; what a snapshot and a fork do to all
// caches: all_caches.cpp.
#include "heap/thread_life.hpp"

#include "base/options.hpp"
#include "heap/announce.hpp"
#include "heap/background.hpp"
#include "heap/block_state.hpp"
#include "heap/budget.hpp"
#include "heap/counters.hpp"
#include "heap/gate.hpp"
#include "heap/heap.hpp"
#include "heap/long_lists.hpp"
#include "heap/orphan_index.hpp"
#include "heap/own_spans.hpp"
#include "heap/registry.hpp"
#include "heap/reuse.hpp"
#include "heap/sampling.hpp"
#include "heap/slab.hpp"
#include "heap/sparse.hpp"
#include "heap/transfer.hpp"
#include "os/atomic_ref.hpp"
#include "os/memory.hpp"
#include "os/seldom_touched.hpp"
#include "pages/nodes.hpp"
#include "pages/region.hpp"
#include "pages/spans.hpp"

namespace sluice {

constinit ThreadCache cache_not_started{};
SLUICE_SELDOM_TOUCHED constinit ThreadCache cache_torn_down{};
#if !defined(SLUICE_THREAD_SLOTS)
constinit thread_local ThreadCache* thread_cache __attribute__((tls_model("initial-exec"))) = &cache_not_started;
#endif

namespace cache {

constinit Registry registry{.all{&shared_cache}};

namespace {

constexpr size_t orphan_cache_bytes = 192 * 1024;  // an orphan keeps its cache for the next thread if it is this small…
constexpr size_t orphans_with_cache = 8;           // …and there are not many others
constexpr unsigned portions_at_end = 8;            // of a walk over its slabs that a thread waits for when it ends
constexpr unsigned steal_tries = 32;               // notes of orphans looked at for a slab, most of them at hand

constinit std::atomic<bool> counting_on{false};
constinit std::atomic<bool> options_missing{false};  // the heap started before the environment was there

enum StartState : uint32_t { NotStarted, Starting, HeapReady, Started };
constinit std::atomic<uint32_t> start_state{NotStarted};
constinit std::atomic<uintptr_t> starter{0};       // the thread that starts the heap
constinit std::atomic<bool> ends_are_told{false};  // end_thread is registered with the system

}  // namespace

namespace {

// Takes in what is queued on orphans whose lock was held when it was queued, and goes on with the walk over the slabs
// of one, for a portion. Requires the registry's lock.
void look_after_noted() noexcept SLUICE_REQUIRES(registry.lock) {
  if (orphan_index::empty(orphan_index::to_look_at)) return;
  bool walked = false;
  for (ThreadCache* o = orphan_index::take_all(orphan_index::to_look_at); o != nullptr;) {
    ThreadCache* const next = o->next_noted[orphan_index::to_look_at];
    orphan_index::forget(*o, orphan_index::to_look_at);
    if (o->orphan.load(std::memory_order_relaxed)) {  // else its thread does
      slab::look_after(*o);
      if (!walked && sparse::is_due(*o) && o->lock.try_lock()) {
        sparse::look(*o);
        walked = true;
        slab::let_go(*o);
      }
      if (sparse::is_due(*o)) orphan_index::note(*o, orphan_index::to_look_at);
    }
    o = next;
  }
}

}  // namespace

void sweep_orphans() noexcept {
  if (registry.orphan_count.load(std::memory_order_relaxed) == 0 || !registry.lock.try_lock()) return;
  look_after_noted();
  const bool arenas = arena_hooks.load(std::memory_order_relaxed) != nullptr;
  for (ThreadCache* o = arenas ? registry.orphans : nullptr; o != nullptr; o = o->next_orphan) {
    if (o->arena == nullptr || !o->lock.try_lock()) continue;
    hooks().give_back_orphaned(*o);
    slab::let_go(*o);
  }
  registry.lock.unlock();
}

namespace {

// A slab of an orphan that is not busy, with `near` of this thread's memory node; the cache's from now on. Or null.
Unit* search_orphans(ThreadCache& c, unsigned k, bool near) noexcept SLUICE_REQUIRES(registry.lock, c.lock) {
  Unit* found = nullptr;
  ThreadCache* busy = nullptr;  // and those whose slabs are far
  for (unsigned tries = 0; found == nullptr && tries < steal_tries; ++tries) {
    ThreadCache* const o = orphan_index::take(k);
    if (o == nullptr) break;
    if (!o->orphan.load(std::memory_order_relaxed)) {  // another thread has it now
      orphan_index::forget(*o, k);
      continue;
    }
    if (!o->lock.try_lock()) {
      o->next_noted[k] = busy;
      busy = o;
      continue;
    }
    const size_t first = o->partial[k];
    if (first != unit_index_none && near && nodes::is_far(first)) {
      o->next_noted[k] = busy;
      busy = o;
      slab::let_go(*o);
      continue;
    }
    if (first != unit_index_none) {
      found = region::unit_at(first);
      slab::change_owner(found, c);
    }
    if (o->partial[k] != unit_index_none)
      orphan_index::put_back(*o, k);
    else
      orphan_index::forget(*o, k);
    slab::let_go(*o);
  }
  while (busy != nullptr) {
    ThreadCache* const next = busy->next_noted[k];
    orphan_index::put_back(*busy, k);
    busy = next;
  }
  return found;
}

}  // namespace

Unit* steal(ThreadCache& c, unsigned k) noexcept {
  if ((orphan_index::empty(k) && orphan_index::empty(orphan_index::to_look_at)) || !registry.lock.try_lock())
    return nullptr;
  look_after_noted();
  Unit* found = nodes::are_several() ? search_orphans(c, k, true) : nullptr;
  if (found == nullptr) found = search_orphans(c, k, false);
  registry.lock.unlock();
  return found;
}

namespace {
constinit std::atomic<bool> new_is_passed_on{false};
}

void pass_on_new() noexcept {
  new_is_passed_on.store(true, std::memory_order_relaxed);
  ThreadCache& c = *thread_cache;
  if (c.attached) set_gate(c, c.mode.with(CacheMode::PassingOn, true));
}

namespace {

ThreadCache* create() noexcept {
  static_assert(2 * sizeof(ThreadCache) <= unit_size, "two caches lie in a unit, also in a secure build");
  void* const memory = spans::allocate_metadata(sizeof(ThreadCache));
  if (memory == nullptr) return nullptr;
  auto* const c = static_cast<ThreadCache*>(memory);
  for (size_t i = 0; i <= max_direct_size / min_alignment; ++i)
    c->bin_of[i] = class_byte_of(size_class_of(i * min_alignment));
  for (unsigned k = 1; k < size_class_count; ++k) {
    c->bins[k].cap = c->bins[k].room = budget::first_room(k);
    c->uses[k].earned = static_cast<uint16_t>(budget::first_cap(k));
  }
  c->budget_kib = budget::at_first();
  if (delays_reuse) hardened::prepare(*c);
  c->random = os::random_bits() ^ reinterpret_cast<uintptr_t>(c) ^ 1;
  c->attached = true;
  return c;
}

void add_to_all(ThreadCache& c) noexcept {
  c.next_cache = registry.all.load(std::memory_order_relaxed);
  registry.all.store(&c, std::memory_order_release);  // pairs with first()
}

size_t held_bytes(const ThreadCache& c) noexcept {
  size_t bytes = 0;
  for (unsigned k = 1; k < size_class_count; ++k)
    bytes += size_t{held_blocks(c, k)} * class_sizes[k];
  return bytes;
}

}  // namespace

ThreadCache* add_common_cache() noexcept {
  ThreadCache* const c = create();
  if (c == nullptr) return nullptr;
  c->attached = false;
  c->is_common = true;
  add_to_all(*c);
  return c;
}

void note_live(size_t threads) noexcept {
  budget::note_live(threads);
  long_lists::note_live(threads);
  transfer::has_others.store(threads > 1, std::memory_order_relaxed);
}

void push_orphan(ThreadCache& c) noexcept {
  if (c.orphan.load(std::memory_order_relaxed)) return;  // a fork in a signal handler has done it already
  // Sequentially consistent: pairs with put_remote, see there.
  c.orphan.store(true, std::memory_order_seq_cst);
  c.next_orphan = registry.orphans;
  registry.orphans = &c;
  registry.orphan_count.fetch_add(1, std::memory_order_relaxed);
  note_live(--registry.threads.live);
  orphan_index::note_all(c);
}

namespace {

// Runs at the end of each thread that has asked for it, as a destructor of thread-specific data. The first round only
// asks for another one, so that the destructors of the program still find a cache.
void end_thread(void* value) noexcept {
  ThreadCache& c = *thread_cache;
  if (!c.attached) return;  // it has asked, and found no memory for a cache
  if (!c.ending) {
    c.ending = true;
    if (os::arm_thread_exit(value)) return;
  }
  if (checks_blocks) hardened::check_waiting();
  thread_cache = &cache_torn_down;
  {
    const CacheLock held(c.lock);
    if (c.arena != nullptr) hooks().end_thread(c);
    if (delays_reuse) flush_delayed(c);
    if (c.long_class != 0) flush_class(c, c.long_class);
    const bool keep = registry.orphan_count.load(std::memory_order_relaxed) < orphans_with_cache &&
                      held_bytes(c) <= orphan_cache_bytes;
    if (keep) {
      slab::collect_pending(c);
      own_spans::give_back(c);
    } else {
      flush_all(c);
    }
  }
  for (unsigned i = 0; i < portions_at_end && sparse::is_due(c); ++i) {  // others may wait for the lock
    const CacheLock held(c.lock);
    sparse::look(c);
  }
  bool is_last = false;
  bool one_is_left = false;
  {
    const MutexLock registry_guard(registry.lock);
    c.lock.lock();
    push_orphan(c);
    is_last = registry.threads.live == 0;
    one_is_left = registry.threads.live == 1;
    slab::let_go(c);
    if (sparse::is_due(c)) orphan_index::note(c, orphan_index::to_look_at);  // who searches orphans does the rest
  }
  if (one_is_left) {
    transfer::flush();  // nobody is left to pass on to
    look_at_ended();    // a phase in which there were several may be over
  }
  region::purge_at_thread_end();
  if (is_last) background::stop();
}

// SLUICE_PURGE_DELAY=never, unless the program has said how much stays.
void keep_all_if_asked() noexcept {
  if (options.purge_delay == delay_never && region::free_bound() == region::no_bound) region::keep_free(SIZE_MAX);
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
    if (starter.load(std::memory_order_relaxed) == thread_token()) return seen == HeapReady;
    os::yield();
  }
  starter.store(thread_token(), std::memory_order_relaxed);
  const bool options_read = read_options();
  options_missing.store(!options_read, std::memory_order_relaxed);
  if (!os::prepare_thread_words() || !region::initialize()) {
    starter.store(0, std::memory_order_relaxed);
    start_state.store(NotStarted, std::memory_order_release);
    return false;
  }
  keep_all_if_asked();
  os::note_memory_size();
  if constexpr (encodes_links || checks_blocks) hardened::start();
  // Until the options can be read everything is counted, so that counts are exact if they are wanted.
  set_counting(!options_read || options_want_counts());
  start_state.store(HeapReady, std::memory_order_release);
  os::register_fork_handlers(lock_for_fork, unlock_after_fork, unlock_in_child);
  starter.store(0, std::memory_order_relaxed);
  start_state.store(Started, std::memory_order_release);  // pairs with the loads above
  return true;
}

void finish_start() noexcept {
  if (!start() || !options_missing.load(std::memory_order_relaxed) || !read_options()) return;
  options_missing.store(false, std::memory_order_relaxed);
  keep_all_if_asked();
  set_counting(options_want_counts());
}

namespace {

// Asks for a call of end_thread when this thread ends. False when the system refuses; it may no longer do so later.
bool ask_for_end() noexcept {
  const KeepErrno keep;
  if (!ends_are_told.load(std::memory_order_acquire)) {
    const MutexLock held(registry.lock);
    if (!ends_are_told.load(std::memory_order_relaxed))
      ends_are_told.store(os::register_thread_exit(end_thread), std::memory_order_release);
    if (!ends_are_told.load(std::memory_order_relaxed)) return false;
  }
  return os::arm_thread_exit(reinterpret_cast<void*>(thread_token()));
}

bool change_word(ThreadCache*& seen, ThreadCache* to) noexcept {
#if defined(SLUICE_THREAD_SLOTS)
  return thread_cache.change(seen, to);
#else
  return atomic_ref(thread_cache).compare_exchange_strong(seen, to, std::memory_order_relaxed);
#endif
}

// The link to the orphan that ended last of those on this thread's memory node; or null where there are few and all are
// on others. Where there are many, it is the last one's after a few.
ThreadCache** find_orphan() noexcept SLUICE_REQUIRES(registry.lock) {
  ThreadCache** link = &registry.orphans;
  for (unsigned tries = steal_tries; tries != 0 && *link != nullptr; link = &(*link)->next_orphan, --tries)
    if (!nodes::is_far(unit_index_of(*link))) return link;
  return *link != nullptr ? &registry.orphans : nullptr;
}

ThreadCache* adopt(ThreadCache** link) noexcept SLUICE_REQUIRES(registry.lock) {
  ThreadCache* const c = *link;
  *link = c->next_orphan;
  registry.orphan_count.fetch_sub(1, std::memory_order_relaxed);
  c->orphan.store(false, std::memory_order_seq_cst);
  return c;
}

// A cache for a thread, in use from now on: an orphan, or a new one. Null when there is no memory.
ThreadCache* adopt_or_create(bool* is_first) noexcept {
  const MutexLock held(registry.lock);
  ThreadCache* c = nullptr;
  if (ThreadCache** const link = find_orphan(); link != nullptr) {
    c = adopt(link);
  } else if (c = create(); c != nullptr) {
    add_to_all(*c);
    if (++registry.threads.caches == 2) note_several();
  } else if (registry.orphans != nullptr) {
    c = adopt(&registry.orphans);
  } else {
    return nullptr;
  }
  c->first_transfer = static_cast<uint8_t>(registry.threads.started++);
  if (++registry.threads.live > registry.threads.peak) registry.threads.peak = registry.threads.live;
  *is_first = registry.threads.live == 1;
  note_live(registry.threads.live);
  return c;
}

}  // namespace

void note_several() noexcept {
  if (has_several_threads.load(std::memory_order_relaxed)) return;
  if (has_several_threads.exchange(true, std::memory_order_seq_cst)) return;
  for (ThreadCache* c = first(); c != nullptr; c = c->next_cache)
    if (c->counters != nullptr) counters::note_several(*c->counters);
}

ThreadCache& attach() noexcept {
  if (thread_cache != &cache_not_started) return *thread_cache;
  if (!start() || registry.lock.held_by_this_thread()) return cache_torn_down;
  // What libc allocates meanwhile, and a signal handler, are served without a cache. What start() called may have got
  // one for this thread.
  ThreadCache* seen = &cache_not_started;
  if (!change_word(seen, &cache_torn_down)) return *seen;
  // A thread whose end nobody tells would take its cache along, and all that is in it: it does without.
  bool is_first = true;
  ThreadCache* const c = ask_for_end() ? adopt_or_create(&is_first) : nullptr;
  if (c == nullptr) {
    thread_cache = &cache_not_started;
    return cache_torn_down;
  }
  const CacheMode mode = CacheMode{}
                             .with(CacheMode::Counting, counting())
                             .with(CacheMode::Sampling, sampling::attach(*c))
                             .with(CacheMode::PassingOn, new_is_passed_on.load(std::memory_order_relaxed));
  if (mode.has(CacheMode::Counting) && c->counters == nullptr) c->counters = counters::create();
  // An orphan's lock may be held by a thread that frees into it: from here on its slabs are this thread's alone.
  c->lock.lock();
  c->ending = false;
  sparse::begin_anew(*c);  // what its last thread left free may be what this one needs
  budget::renew(*c);
  own_spans::renew(*c);
  for (unsigned k = 1; k < size_class_count; ++k)
    renew_stand_in(*c, k);
  set_gate(*c, mode);
  c->lock.unlock();
  thread_cache = c;
  if (!is_first && background::starts_with_caches()) background::start();
  return *c;
}

void flush_own_blocks() noexcept {
  ThreadCache& own = *thread_cache;
  if (!own.attached || own.lock.held_by_this_thread()) return;
  const CacheLock held(own.lock);
  flush_all(own);
}

void flush_own() noexcept {
  ThreadCache& own = *thread_cache;
  if (!own.attached || own.lock.held_by_this_thread()) return;
  const CacheLock held(own.lock);
  flush_all(own);
  if (own.arena != nullptr) hooks().trim(own);
}

void flush_idle() noexcept {
  if (thread_cache->lock.held_by_this_thread() || registry.lock.held_by_this_thread()) return;
  transfer::flush();
  flush_own();
  if (!shared_cache.lock.held_by_this_thread()) {
    const MutexLock held(shared_cache.lock);
    flush_all(shared_cache);
  }
  const MutexLock held(registry.lock);
  for (ThreadCache* o = registry.orphans; o != nullptr; o = o->next_orphan) {
    if (o->lock.held_by_this_thread()) continue;
    o->lock.lock();
    flush_all(*o);
    if (o->arena != nullptr) hooks().give_back_orphaned(*o);
    slab::let_go(*o);
  }
  look_after_noted();
  transfer::look_at_common();
}

void flush_orphans() noexcept {
  for_each_orphan([](ThreadCache& o) SLUICE_UNCHECKED_LOCKS { flush_all(o); });
  transfer::look_at_common();
}

ThreadCache* first() noexcept {
  return registry.all.load(std::memory_order_acquire);
}

ThreadCounts thread_counts() noexcept SLUICE_UNCHECKED_LOCKS {
  return registry.threads;
}

void set_counting(bool on) noexcept {
  counting_on.store(on, std::memory_order_relaxed);
  ThreadCache& c = *thread_cache;
  if (on || !counted(&c)) return;
  const CacheLock held(c.lock);
  set_gate(c, c.mode.with(CacheMode::Counting, false));
}

bool counting() noexcept {
  return counting_on.load(std::memory_order_relaxed);
}

}  // namespace cache
}  // namespace sluice
