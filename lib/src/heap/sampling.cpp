// See sampling.hpp.
#include "heap/sampling.hpp"

#include <atomic>

#include "guarded/pool.hpp"
#include "heap/counters.hpp"
#include "heap/gate.hpp"
#include "heap/large.hpp"
#include "heap/thread_cache.hpp"
#include "os/diagnosis.hpp"
#include "os/keep_errno.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"
#include "os/unwind.hpp"

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
  return &c == thread_cache && c.attached && !c.lock.held_by_this_thread() && !region::mutex().held_by_this_thread();
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

// Bytes that all threads have allocated, each up to when it last drew a distance.
constinit std::atomic<uint64_t> allocated_bytes{0};
constinit std::atomic<uint32_t> threads{0};

// Draws the distance to the thread's next sample.
void draw_distance([[maybe_unused]] ThreadCache& c) noexcept {
  if constexpr (!profiles_blocks) return;
  const uint64_t profile_rate = profile::rate();
  const int64_t distance = profile_rate != 0 ? profile::distance_to_next(profile_rate, next_random(c)) : never_due;
  c.profile.rate = profile_rate;
  c.profile.interval = distance;
  c.profile.until = distance;
}

// Whether it is time for a sample of the profile. Where there is no profile the count is as high as it can be, and goes
// down with each request that fails, too. What was drawn at another rate says nothing about this one.
bool is_time_for_sample(ThreadCache& c) noexcept {
  if (!profiles_blocks || c.profile.until >= 0) return false;
  if (c.profile.rate != 0 && c.profile.rate == profile::rate()) return true;
  draw_distance(c);
  return false;
}

// The distance to the thread's next sample, after one.
void draw(ThreadCache& c) noexcept {
  constexpr int64_t address_space = int64_t{1} << 47;  // a request that it cannot hold has failed
  const int64_t passed = c.profile.interval - c.profile.until;
  if (passed < address_space) allocated_bytes.fetch_add(static_cast<uint64_t>(passed), std::memory_order_relaxed);
  draw_distance(c);
}

// The name of the calling thread, whose cache it is. At high rates it may be one that the thread had a millisecond ago:
// to ask for it takes as long as half a sample.
const char* name_of(ThreadCache& c, uint64_t now) noexcept {
  constexpr uint64_t exact_below = 64 * 1024;  // bytes between two samples
  constexpr uint64_t kept_ns = 1'000'000;
  static_assert(sizeof c.profile.name == os::thread_name_capacity);
  if (c.profile.rate < exact_below || c.profile.named_ns == 0 || now - c.profile.named_ns > kept_ns) {
    char name[os::thread_name_capacity]{};
    os::thread_name(name);
    __builtin_memcpy(c.profile.name, name, sizeof name);
    c.profile.named_ns = now;
  }
  return c.profile.name;
}

// Calls take(sample) for an allocation: with the stack that leads here, or that of a block that is being moved.
template <typename Take>
inline __attribute__((always_inline)) auto with_sample(ThreadCache& c, size_t size, Take take) noexcept {
  const uint64_t now = os::clock_ns();
  const profile::Site* const site = c.profile.moved_from;
  if (site != nullptr && c.profile.moved_size == size)
    return take(profile::Sample{moment_of(&c), now, size, site->frames(), site->frame_count, site->complete,
                                c.profile.rate, name_of(c, now)});
  uintptr_t frames[profile::most_frames];
  const os::Unwound found = os::unwind(frames, profile::most_frames, c.profile.stack);
  return take(
      profile::Sample{moment_of(&c), now, size, frames, found.count, found.complete, c.profile.rate, name_of(c, now)});
}

__attribute__((noinline)) uint32_t begin_sample(ThreadCache& c, size_t size) noexcept {
  return with_sample(c, size, [](const profile::Sample& sample) noexcept { return profile::begin(sample); });
}

// The class whose blocks lie at multiples of the alignment; 0 where the block is a large one.
unsigned class_for(size_t size, size_t alignment) noexcept {
  if (size > max_small_size) return 0;
  return alignment <= min_alignment ? size_class_of(size) : aligned_class_for(size, alignment);
}

// A sample of the profile: of a guarded block that was just allocated, or with a block of its own. Null when there is
// none. The stack is followed in one place for all of them, so that it is the same down to there (os/known_stacks.hpp).
__attribute__((noinline)) void* place_sample(ThreadCache& c, size_t size, size_t alignment, bool zeroed,
                                             void* guarded_block) noexcept {
  return with_sample(c, size, [&](const profile::Sample& sample) noexcept -> void* {
    if (guarded_block != nullptr) {
      guarded::record_of(guarded_block) = profile::begin(sample);
      return guarded_block;
    }
    if (const unsigned size_class = class_for(size, alignment)) {
      void* const block = profile::allocate(sample, size_class);
      if (block == nullptr) return nullptr;
      if (cache::counted(&c)) counters::count_malloc(c.counters, size_class, size);
      return zeroed ? __builtin_memset(block, 0, class_sizes[size_class]) : block;
    }
    void* const block = large::allocate(size != 0 ? size : 1, alignment > unit_size ? alignment : unit_size, zeroed);
    if (block == nullptr) return nullptr;
    Unit& span = *region::unit_at(unit_index_of(block));
    if (cache::counted(&c)) counters::count_large_malloc(c.counters, size, large::usable_size(span));
    span.large.record = profile::begin(sample);
    return block;
  });
}

// This thread samples, and those that start from now on.
void begin_on_this_thread() noexcept {
  ThreadCache& c = *thread_cache;
  if (c.attached) cache::set_gate(c, c.mode.with(CacheMode::Sampling, attach(c)));
}

}  // namespace

void start(uint64_t new_rate) noexcept {
  budget.seen_ns.store(os::clock_ns(), std::memory_order_relaxed);
  rate.store(new_rate, std::memory_order_relaxed);
  begin_on_this_thread();
}

void start_profile() noexcept {
  begin_on_this_thread();
}

namespace {

// To all threads. Each change of it follows one of the two: that of a rate, or of a thread's own word.
constinit std::atomic<uint64_t> requests{0};

// Draws both distances. Returns: whether the cache samples. Whoever asks it to look again does so after the rate has
// changed: either the new rate is seen here, or the thread is asked after this.
bool draw_all(ThreadCache& c) noexcept {
  c.sampling = IsSampling;
  requests.fetch_add(0, std::memory_order_acq_rel);  // pairs with ask_all
  const uint64_t guard_rate = rate.load(std::memory_order_relaxed);
  c.until_guarded = guard_rate != 0 ? next_interval(c) : never_due;
  draw_distance(c);
  if (guard_rate != 0 || c.profile.rate != 0) {
    if (profiles_blocks && c.profile.number == 0)
      c.profile.number = threads.fetch_add(1, std::memory_order_relaxed) + 1;
    return true;
  }
  c.until_guarded = 0;
  c.sampling.replace(IsSampling, NotSampling);
  return false;
}

}  // namespace

bool attach(ThreadCache& c) noexcept {
  c.until_guarded = 0;
  if constexpr (profiles_blocks) {
    c.profile.number = 0;
    c.profile.moved_from = nullptr;
    c.profile.stack = {};
    c.profile.named_ns = 0;
  }
  return draw_all(c);
}

void look_again(ThreadCache& c) noexcept {
  const bool in_a_call = c.mode.has(CacheMode::Sampling) && (c.until_guarded <= 0 || c.profile.until < 0);
  if (in_a_call || !is_usable(c)) return;  // in a signal handler; the thread's next call looks
  cache::set_gate(c, c.mode.with(CacheMode::Sampling, draw_all(c)));
}

bool is_due(ThreadCache* c, size_t size) noexcept {
  if (c->sampling != IsSampling) [[unlikely]] {
    look_again(*c);
    if (c->sampling != IsSampling) return false;
  }
  return next_sample(c, profile::counted_bytes(size)) == Turn::Due;
}

Turn turn_while_sampling(ThreadCache* c, size_t size) noexcept {
  look_again(*c);
  return c->sampling == IsSampling ? turn_of(c, size) : Turn::NotCounted;
}

void* sample_if_due(ThreadCache* c, size_t size, size_t alignment, bool zeroed) noexcept {
  return is_due(c, size) ? allocate_due(*c, size, alignment, zeroed) : nullptr;
}

namespace {

void ask(ThreadCache& c) noexcept {
  c.sampling = AskedToLookAgain;
  c.sampled_limit = 0;
  c.profile.limit = 0;
  c.small_limit = 0;
}

}  // namespace

void ask_all() noexcept {
  requests.fetch_add(1, std::memory_order_acq_rel);  // pairs with draw_all
  for (ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
    if (c->attached) ask(*c);  // else a static cache
  // A thread that was about to open its gate may have written over the 0, before or after it has looked whether it is
  // asked. What its processor had not yet shown to the others is there now.
  os::sleep_briefly();
  for (ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
    if (c->attached && c->sampling == AskedToLookAgain &&
        (c->small_limit != 0 || c->sampled_limit != 0 || c->profile.limit != 0))
      ask(*c);
}

void ask_in_child() noexcept {
  ThreadCache& c = *thread_cache;
  if (c.attached && c.profile.rate != profile::rate()) ask(c);
}

void* allocate_due(ThreadCache& c, size_t size, size_t alignment, bool zeroed) noexcept {
  // Until the next interval is set, allocations of this thread (signal handlers, the unwinder) are not counted.
  const bool guards = c.until_guarded == 0;
  const bool profiles = is_time_for_sample(c);
  void* block = nullptr;
  if (guards && is_usable(c) && is_affordable(size)) {
    const KeepErrno keep;
    const Charge charge;
    block = guarded::allocate(size, alignment, zeroed);
    if (block != nullptr && cache::counted(&c)) counters::count_large_malloc(c.counters, size, size);
  }
  if (profiles) {
    if (is_usable(c)) {
      const KeepErrno keep;
      block = place_sample(c, size, alignment, zeroed, block);
      profile::do_deferred_work();
    } else {
      profile::count_dropped();
    }
    draw(c);
  }
  region::purge_aged();  // a program whose blocks are all guarded makes no other slow calls
  if (guards) c.until_guarded = next_interval(c);
  return block;
}

profile::Moment moment_of(const ThreadCache* c) noexcept {
  const uint64_t bytes = allocated_bytes.load(std::memory_order_relaxed);
  if (c == nullptr || c->profile.until > c->profile.interval) return {0, bytes};
  return {c->profile.number, bytes + static_cast<uint64_t>(c->profile.interval - c->profile.until)};
}

void end_record(uint32_t record) noexcept {
  const KeepErrno keep;
  profile::end(record, moment_of(thread_cache->attached ? thread_cache : nullptr));
}

void sample_resized(ThreadCache* c, Unit& span, uint32_t record, size_t size) noexcept {
  span.large.record = profile::no_record;
  if (c != nullptr && may_sample(c) && is_due(c, size)) {
    if (is_time_for_sample(*c)) {
      c->profile.moved_from = profile::site_of(record);
      c->profile.moved_size = size;
      span.large.record = begin_sample(*c, size);
      c->profile.moved_from = nullptr;
      draw(*c);
    }
    if (c->until_guarded == 0) c->until_guarded = 1;  // it is the next one's turn
  }
  if (record != profile::no_record) profile::end(record, moment_of(c));
}

Moving::Moving(uint32_t record, size_t size) noexcept
    : cache_(record != profile::no_record && thread_cache->attached ? thread_cache : nullptr) {
  if (cache_ == nullptr) return;
  cache_->profile.moved_size = size;
  cache_->profile.moved_from = profile::site_of(record);
}

Moving::~Moving() {
  if (cache_ != nullptr) cache_->profile.moved_from = nullptr;
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
