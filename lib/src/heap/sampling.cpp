// See sampling.hpp.
#include "heap/sampling.hpp"

#include <atomic>

#include "base/keep_errno.hpp"
#include "guarded/pool.hpp"
#include "heap/counters.hpp"
#include "heap/gate.hpp"
#include "heap/thread_cache.hpp"
#include "os/diagnosis.hpp"
#include "os/memory.hpp"

namespace sluice::sampling {
namespace {

constexpr uint64_t earned_share = 400;      // one nanosecond of guarding for so many that pass…
constexpr int64_t most_saved_ns = 100'000;  // …saved up to this, which is there at the start too
constexpr int64_t unseen_ns = 2'000;        // of a call: page faults and caches, felt later

struct Budget {
  std::atomic<int64_t> left_ns{most_saved_ns};
  std::atomic<uint64_t> seen_ns{0};  // the time up to which it was earned
};
constinit Budget budget;
constinit std::atomic<uint64_t> rate{0};

bool is_bounded() noexcept {
  return rate.load(std::memory_order_relaxed) >= bounded_rate;
}

bool is_affordable(size_t size) noexcept {
  if (!is_bounded()) return true;
  if (size > most_bounded_bytes) return false;
  const uint64_t now = os::clock_ns();
  uint64_t seen = budget.seen_ns.load(std::memory_order_relaxed);
  if (seen < now && budget.seen_ns.compare_exchange_strong(seen, now, std::memory_order_relaxed)) {
    const auto earned = static_cast<int64_t>((now - seen) / earned_share);
    const int64_t left = budget.left_ns.load(std::memory_order_relaxed);
    const int64_t room = left < most_saved_ns ? most_saved_ns - left : 0;
    budget.left_ns.fetch_add(earned < room ? earned : room, std::memory_order_relaxed);
  }
  return budget.left_ns.load(std::memory_order_relaxed) > 0;
}

// Whether a call of this thread may use its cache now: none is being interrupted by this one.
bool is_usable(const ThreadCache& c) noexcept {
  return &c == thread_cache && c.attached && !c.lock.held_by_this_thread();
}

// xorshift; a seed of 0 would stay 0.
uint64_t next_random(ThreadCache& c) noexcept {
  c.random ^= c.random << 13;
  c.random ^= c.random >> 7;
  c.random ^= c.random << 17;
  return c.random;
}

int64_t next_interval(ThreadCache& c) noexcept {
  const uint64_t mean = rate.load(std::memory_order_relaxed);
  return static_cast<int64_t>(mean <= 1 ? mean : 1 + next_random(c) % (2 * mean - 1));
}

}  // namespace

void start(uint64_t new_rate) noexcept {
  budget.seen_ns.store(os::clock_ns(), std::memory_order_relaxed);
  rate.store(new_rate, std::memory_order_relaxed);
  ThreadCache& c = *thread_cache;
  if (c.attached) cache::set_gate(c, c.mode.with(CacheMode::Sampling, attach(c)));
}

bool attach(ThreadCache& c) noexcept {
  c.until_guarded = next_interval(c);
  return c.until_guarded != 0;
}

void* allocate_due(ThreadCache& c, size_t size, size_t alignment, bool zeroed) noexcept {
  // Until the next interval is set, allocations of this thread (signal handlers, the unwinder) are not counted.
  void* block = nullptr;
  if (is_usable(c) && is_affordable(size)) {
    const KeepErrno keep;
    const Charge charge;
    block = guarded::allocate(size, alignment, zeroed);
    if (block != nullptr && cache::counted(&c)) counters::count_large_malloc(c.counters, size, size);
  }
  region::purge_aged();  // a program whose blocks are all guarded makes no other slow calls
  c.until_guarded = next_interval(c);
  return block;
}

Charge::Charge() noexcept : since_(is_bounded() ? os::clock_ns() : 0) {}

Charge::~Charge() {
  if (since_ == 0) return;
  // No more than can be earned soon: the thread may have been off its processor meanwhile, or stopped by a debugger.
  const auto spent = static_cast<int64_t>(os::clock_ns() - since_);
  const int64_t charged = spent < most_saved_ns ? spent : most_saved_ns;
  budget.left_ns.fetch_sub(charged + unseen_ns, std::memory_order_relaxed);
}

}  // namespace sluice::sampling
