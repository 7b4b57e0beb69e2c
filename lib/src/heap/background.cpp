// See background.hpp.
#include "heap/background.hpp"

#include <algorithm>
#include <atomic>

#include "base/options.hpp"
#include "base/policy.hpp"
#include "heap/regular.hpp"
#include "heap/thread_cache.hpp"
#include "heap/transfer.hpp"
#include "heap/upkeep.hpp"
#include "os/keep_errno.hpp"
#include "os/memory.hpp"
#include "os/thread.hpp"
#include "pages/quarantine.hpp"
#include "pages/region.hpp"

namespace sluice::background {
namespace {

namespace rest = region::rest;

static_assert(region::nothing_dirty == os::until_woken);

enum State : uint32_t { None, Starting, Running, Stopping };
constinit std::atomic<uint32_t> state{None};
constinit std::atomic<bool> with_caches{false};
constinit std::atomic<bool> gave_way{false};  // there was room for no thread but the program's
// Written while state is Starting, read while it is Stopping.
constinit uintptr_t thread = 0;
constinit std::atomic<uint32_t> process{0};

// Acquire and release: pairs with each other, for what is written in between.
bool change(uint32_t from, uint32_t to) noexcept {
  return state.compare_exchange_strong(from, to, std::memory_order_acq_rel, std::memory_order_relaxed);
}

// How long the thread sleeps at least: spans that were freed one after the other are purged together.
uint64_t least_sleep() noexcept {
  return options.purge_delay / 4 + 1;
}

// Looks at the caches that are due by now, as a whole.
void look_at_all_due() noexcept {
  const uint64_t now = os::clock_ms();
  while (sparse::next_due.load(std::memory_order_relaxed) <= now)
    cache::look_at_due();
}

// After how many milliseconds a cache is due; nothing_dirty where none is. No sooner than pages that become dirty now.
uint64_t until_due() noexcept {
  const uint64_t due = sparse::next_due.load(std::memory_order_seq_cst);  // pairs with sparse::expect
  if (due == sparse::never) return region::nothing_dirty;
  const uint64_t now = os::clock_ms();
  return due <= now ? 0 : due - now < options.purge_delay ? due - now : options.purge_delay;
}

}  // namespace

uint64_t look() noexcept {
  os::call_counts.background_looks.fetch_add(1, std::memory_order_relaxed);
  look_at_all_due();
  cache::transfer::look();
  cache::collect_from_others(cache::Others::WithPending);
  if (quarantines_spans) quarantine::purge_aged();
  uint64_t due = region::purge_at_rest();
  // Sequentially consistent: pairs with slab::announce, transfer::give, quarantine::retain and sparse::expect, which
  // leave work here and then look whether this is asleep.
  const uint64_t cache_due = until_due();
  if (due == region::nothing_dirty &&
      (cache_due != region::nothing_dirty || cache::any_pending() || cache::transfer::hold_any() ||
       (quarantines_spans && quarantine::retains_any()))) {
    rest::wake();
    due = options.purge_delay;
  }
  if (cache_due < due) due = cache_due;
  return due < least_sleep() ? least_sleep() : due;
}

void run() noexcept {
  for (;;) {
    uint64_t sleep = look();
    regular::look_if_any();
    if (rest::word.load(std::memory_order_relaxed) == rest::asleep)
      os::wait_for(rest::word, rest::asleep, std::min(sleep, regular::until_due()));
    if (sleep == region::nothing_dirty)
      sleep = options.purge_delay;  // what was freed since is no older than this moment
    if (rest::word.load(std::memory_order_relaxed) == rest::awake)
      os::wait_for(rest::word, rest::awake, std::min(sleep, regular::until_due()));
    if (rest::word.load(std::memory_order_acquire) == rest::ending) return;  // pairs with stop
  }
}

void start() noexcept {
  if (state.load(std::memory_order_relaxed) != None || !options.background) return;
  if (gave_way.load(std::memory_order_relaxed)) return;
  // Whoever ends last among the threads with a cache stops it: one that does not end before it has started it.
  if (!thread_cache->attached && !cache::attach().attached) return;
  if (!change(None, Starting)) return;
  const KeepErrno keep;
  rest::word.store(rest::awake, std::memory_order_relaxed);
  process.store(os::process_id(), std::memory_order_relaxed);
  const bool started = os::start_thread("sluice", run, &thread);
  state.store(started ? Running : None, std::memory_order_release);  // pairs with change
}

void start_with_caches() noexcept {
  with_caches.store(true, std::memory_order_relaxed);
}

bool starts_with_caches() noexcept {
  return with_caches.load(std::memory_order_relaxed);
}

namespace {

void stop_own() noexcept {
  // Not in a child that called no fork handlers, which may share its parent's memory (vfork).
  if (state.load(std::memory_order_relaxed) != Running || process.load(std::memory_order_relaxed) != os::process_id())
    return;
  if (!change(Running, Stopping)) return;
  rest::word.store(rest::ending, std::memory_order_release);
  os::wake_one(rest::word);
  os::join_thread(thread);
  state.store(None, std::memory_order_release);  // pairs with change
}

constinit std::atomic<bool (*)() noexcept> end_other{nullptr};

bool stop_other() noexcept {
  auto* const end = end_other.load(std::memory_order_relaxed);
  return end != nullptr && end();
}

}  // namespace

void stop() noexcept {
  stop_own();
  (void)stop_other();
}

void stops_also(bool (*end)() noexcept) noexcept {
  end_other.store(end, std::memory_order_relaxed);
}

bool stop_for_good() noexcept {
  const bool ran = state.load(std::memory_order_relaxed) == Running;
  if (ran) {
    gave_way.store(true, std::memory_order_relaxed);
    stop_own();
  }
  return stop_other() || ran;
}

void forget() noexcept {
  rest::word.store(rest::awake, std::memory_order_relaxed);
  state.store(None, std::memory_order_relaxed);
}

}  // namespace sluice::background
