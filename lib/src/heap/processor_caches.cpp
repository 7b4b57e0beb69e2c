// What stands behind processors.hpp: apart from it, since it works with the slabs of caches, which are told of it.
#include "heap/processors.hpp"

#include <bit>

#include "base/options.hpp"
#include "heap/link.hpp"
#include "heap/registry.hpp"
#include "heap/slab.hpp"
#include "heap/sparse.hpp"
#include "heap/thread_life.hpp"
#include "os/memory.hpp"
#include "pages/region.hpp"

namespace sluice::cache::processors {

constinit std::atomic<bool> are_used{false};
constinit std::atomic<bool> were_used{false};
constinit std::atomic<uintptr_t> wants_all{0};
constinit std::atomic<ThreadCache*> caches[most_caches]{};

void let_go(ThreadCache& c) noexcept {
  if (sparse::is_due(c)) [[unlikely]]
    sparse::look(c);
  c.lock.unlock();
}

namespace {

constexpr size_t threads_to_begin = 4;   // for each processor, and one more…
constexpr size_t threads_to_go_on = 2;   // …and as long as there are more than so many
constexpr unsigned patience = 32;        // tenths of a millisecond that a thread waits where all are in use
constexpr uint32_t calls_without = 32;   // larger ones, after it has waited in vain; twice as many each time…
constexpr unsigned most_doublings = 10;  // …up to so often
constexpr uint32_t calls_on_one = 16;    // until a thread asks again which processor it is on
constexpr uint32_t most_of_each = 2;     // times SLUICE_CACHE that a cache keeps of each class…
constexpr uint32_t most_of_all = 16;     // …and of all…
constexpr int32_t least_blocks = 2;      // …but so many of each in any case
constexpr uint32_t price_of_new = 112;   // KiB, as which the drop of what a new slab does not need yet counts
constexpr uint64_t looks_a_delay = 4;    // at what lies unused
constexpr uint32_t most_let_in = 256;    // tenths of a millisecond: a thread that was stopped may hold the other up

constinit std::atomic<uint64_t> seen{0};  // processors, a bit each
constinit std::atomic<size_t> live{0};    // threads
constinit std::atomic<uint64_t> next_look_ms{0};

uint32_t kib_of(unsigned k) noexcept {
  return static_cast<uint32_t>(class_sizes[k] >> 10);
}

int32_t most_blocks(unsigned k) noexcept {
  const size_t blocks = options.cache * most_of_each / class_sizes[k];
  return blocks > INT16_MAX / 2          ? INT16_MAX / 2
         : blocks > size_t{least_blocks} ? static_cast<int32_t>(blocks)
                                         : least_blocks;
}

size_t most_kib() noexcept {
  return options.cache * most_of_all >> 10;
}

// The cache of a processor, which is made now if need be; null where that cannot be done at this moment.
ThreadCache* cache_of(unsigned n) noexcept {
  ThreadCache* c = caches[n].load(std::memory_order_acquire);
  if (c != nullptr) [[likely]]
    return c;
  if (region::mutex().held_by_this_thread() || registry.lock.held_by_this_thread() || !registry.lock.try_lock())
    return nullptr;
  c = caches[n].load(std::memory_order_relaxed);
  if (c == nullptr) {
    c = add_cache_of_processor();
    caches[n].store(c, std::memory_order_release);  // pairs with the load above
  }
  registry.lock.unlock();
  return c;
}

// Returns: how many processors were seen, this one included.
size_t note_seen(int32_t processor) noexcept {
  const uint64_t bit = uint64_t{1} << static_cast<unsigned>(processor) % most_caches;
  uint64_t known = seen.load(std::memory_order_relaxed);
  if ((known & bit) == 0) known = seen.fetch_or(bit, std::memory_order_relaxed) | bit;
  return static_cast<size_t>(std::popcount(known));
}

// The cache of the processor that the thread runs on, as far as it has looked. Null also where threads have ended, or
// turn out to have more processors than it seemed when they came: each serves itself from then on.
ThreadCache* find_cache(ThreadCache& own) noexcept {
  if (own.processor != nullptr && own.processor_calls % calls_on_one != 0) return own.processor;
  const int32_t processor = os::processor();
  own.processor = nullptr;
  if (processor < 0) return nullptr;
  if (live.load(std::memory_order_relaxed) > threads_to_go_on * note_seen(processor))
    own.processor = cache_of(static_cast<unsigned>(processor) % most_caches);
  else
    are_used.store(false, std::memory_order_relaxed);
  return own.processor;
}

// Takes the lock of the cache of this thread's processor, or of another one where somebody else has that. Where others
// have all, one of them has most likely been stopped for a moment, and the processor goes on with it while this thread
// sleeps. Null where that does not help: a thread may be stopped for good, by a debugger or a collector, and none waits
// for it. The caller gives the lock back, which the analysis does not see.
ThreadCache* lock_one(ThreadCache& own) noexcept SLUICE_UNCHECKED_LOCKS {
  ++own.processor_calls;
  if (own.processor_rests != 0) [[unlikely]] {
    --own.processor_rests;
    return nullptr;
  }
  ThreadCache* const c = find_cache(own);
  if (c == nullptr || c->lock.try_lock()) [[likely]] {
    own.processor_waits = 0;
    return c;
  }
  if (c->lock.held_by_this_thread()) return nullptr;
  for (std::atomic<ThreadCache*>& each : caches) {
    ThreadCache* const other = each.load(std::memory_order_acquire);
    if (other != nullptr && other->lock.try_lock()) return own.processor = other;
  }
  if (region::mutex().held_by_this_thread()) return nullptr;
  if (c->lock.try_lock_patiently(patience)) return c;
  own.processor_rests = calls_without << own.processor_waits;  // a fork may hold all of them, and wait for this thread
  if (own.processor_waits < most_doublings) ++own.processor_waits;
  return nullptr;
}

// A block of a slab that this thread or another processor's cache owns, so that what is free there and in memory serves
// before a new slab is made. Whoever uses another one is not waited for.
void* take_from_others(ThreadCache& c, ThreadCache& own, unsigned k) noexcept SLUICE_UNCHECKED_LOCKS {
  if (Unit* const s = own_partial_slab(own, k)) return slab::take_blocks(s, 1).first;
  for (std::atomic<ThreadCache*>& each : caches) {
    ThreadCache* const other = each.load(std::memory_order_acquire);
    if (other == nullptr || other == &c || !other->lock.try_lock()) continue;
    Unit* const s = own_partial_slab(*other, k);
    void* const block = s != nullptr ? slab::take_blocks(s, 1).first : nullptr;
    let_go(*other);
    if (block != nullptr) return block;
  }
  return nullptr;
}

// A block of a slab of the cache, or of others' as far as there are any; else of a new one.
void* take_from_slabs(ThreadCache& c, ThreadCache& own, unsigned k) noexcept SLUICE_UNCHECKED_LOCKS {
  Unit* s = own_partial_slab(c, k);
  if (s == nullptr) {
    if (void* const block = take_from_others(c, own, k)) return block;
    s = partial_slab(c, k);
  }
  if (s == nullptr) return nullptr;
  if (s->slab.carved == 0 && !budget::is_too_often(c, price_of_new, budget::Price::Full)) slab::drop_rest(s, 2);
  return slab::take_blocks(s, 1).first;
}

void count(ThreadCache& c, unsigned k, int32_t blocks) noexcept {
  const uint32_t kib = static_cast<uint32_t>(blocks) * kib_of(k);
  c.uses[k].kept_kib += kib;
  c.kept_kib += kib;
  c.uses[k].used_at = ++c.slow_calls;
}

// The class used least recently that is kept, but for `busy`; 0: there is none.
unsigned oldest_class(const ThreadCache& c, unsigned busy) noexcept {
  unsigned oldest = 0;
  for (unsigned k = budget::last_not_counted_by_room + 1; k < size_class_count; ++k)
    if (k != busy && c.spare[k] != nullptr &&
        (oldest == 0 || c.slow_calls - c.uses[k].used_at > c.slow_calls - c.uses[oldest].used_at))
      oldest = k;
  return oldest;
}

// Gives back what is more than a class, and all of them, may keep.
__attribute__((noinline)) void give_back_excess(ThreadCache& c, unsigned k) noexcept SLUICE_REQUIRES(c.lock) {
  if (c.spare_count[k] > most_blocks(k)) {
    void* const last = c.spare[k];
    void* const rest = next_of(last);
    set_next(last, nullptr);
    count(c, k, 1 - c.spare_count[k]);
    c.spare_count[k] = 1;
    (void)flush_list(c, rest);
  }
  while (c.kept_kib > most_kib()) {
    const unsigned oldest = oldest_class(c, k);
    if (oldest == 0) break;
    flush_class(c, oldest);
  }
}

}  // namespace

void* take(ThreadCache& own, unsigned k) noexcept SLUICE_UNCHECKED_LOCKS {
  ThreadCache* const c = lock_one(own);
  if (c == nullptr) return nullptr;
  void* block = c->spare[k];
  if (block != nullptr) {
    c->spare[k] = next_of(block);
    --c->spare_count[k];
    count(*c, k, -1);
  } else {
    block = take_from_slabs(*c, own, k);
  }
  let_go(*c);
  return block;
}

bool put(ThreadCache& own, unsigned k, void* block) noexcept SLUICE_UNCHECKED_LOCKS {
  ThreadCache* const c = lock_one(own);
  if (c == nullptr) return false;
  set_next(block, c->spare[k]);
  c->spare[k] = block;
  ++c->spare_count[k];
  count(*c, k, 1);
  if (c->spare_count[k] > most_blocks(k) || c->kept_kib > most_kib()) give_back_excess(*c, k);
  let_go(*c);
  return true;
}

void let_in_who_wants_all(ThreadCache& own, uintptr_t wanted) noexcept {
  const auto from = static_cast<uint32_t>(wanted);
  if (own.let_in_from != from) {
    own.let_in_from = from;
    own.let_in = 0;
  }
  if (own.let_in == most_let_in || own.lock.held_by_this_thread()) return;
  ++own.let_in;
  os::wait_briefly(wants_all, wanted);
}

void note_live(size_t threads) noexcept {
  const bool one_more = threads > live.exchange(threads, std::memory_order_relaxed);
  if (!options.processor_caches || !one_more || threads == 1) return;
  if (const int32_t processor = os::processor(); processor >= 0) (void)note_seen(processor);
}

void begin_if_many() noexcept {
  const int32_t processor = options.processor_caches ? os::processor() : -1;
  if (processor < 0) return;
  const size_t processors = note_seen(processor);
  if (live.load(std::memory_order_relaxed) <= threads_to_begin * processors ||
      budget::rich_threads.load(std::memory_order_relaxed) <= processors)
    return;
  were_used.store(true, std::memory_order_relaxed);
  are_used.store(true, std::memory_order_relaxed);
}

void flush() noexcept {
  for_each([](ThreadCache& c) SLUICE_UNCHECKED_LOCKS { flush_all(c); }, patience);
}

void flush_idle() noexcept {
  for_each([](ThreadCache& c) SLUICE_UNCHECKED_LOCKS { flush_all(c); });
}

void look_if_due() noexcept {
  const uint64_t now = os::clock_ms();
  uint64_t due = next_look_ms.load(std::memory_order_relaxed);
  if (now < due || !next_look_ms.compare_exchange_strong(due, now + options.purge_delay / looks_a_delay + 1,
                                                         std::memory_order_relaxed))
    return;
  for_each([](ThreadCache& c) SLUICE_UNCHECKED_LOCKS {
    for (unsigned k = budget::last_not_counted_by_room + 1; k < size_class_count; ++k) {
      if (c.spare[k] == nullptr) continue;
      const auto mark = static_cast<uint16_t>(c.uses[k].used_at);
      if (c.seen[k] == mark) flush_class(c, k);
      c.seen[k] = mark;
    }
    slab::collect_pending(c);
    slab::destroy_empty(c);
  });
}

}  // namespace sluice::cache::processors
