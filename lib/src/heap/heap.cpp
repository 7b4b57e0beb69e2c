// The slow paths of malloc and free, and realloc. See heap.hpp.
#include "heap/heap.hpp"

#include "base/check.hpp"
#include "base/options.hpp"
#include "guarded/pool.hpp"
#include "heap/counters.hpp"
#include "heap/large.hpp"
#include "heap/own_spans.hpp"
#include "heap/regular.hpp"
#include "heap/sampling.hpp"
#include "heap/slab.hpp"
#include "heap/transfer.hpp"
#include "heap/upkeep.hpp"
#include "pages/nodes.hpp"
#include "pages/quarantine.hpp"
#include "profile/profile.hpp"

namespace sluice::heap {

constinit ForeignHooks foreign_hooks{};
constinit std::atomic<DeferredWork> deferred_work{nullptr};

namespace {

bool has_deferred_work() noexcept {
  return deferred_work.load(std::memory_order_relaxed) != nullptr ||
         regular::due_ms.load(std::memory_order_relaxed) != regular::never;
}

}  // namespace

void do_deferred_work() noexcept {
  regular::look_if_any();
  if (deferred_work.load(std::memory_order_relaxed) == nullptr) [[likely]]
    return;
  if (const DeferredWork work = deferred_work.exchange(nullptr, std::memory_order_acquire)) work();
}

ThreadCache* usable_cache() noexcept {
  ThreadCache* c = thread_cache;
  if (!c->attached) [[unlikely]]
    c = &cache::attach();
  return c->attached && !c->lock.held_by_this_thread() ? c : nullptr;
}

ThreadCache* attached_cache() noexcept {
  ThreadCache* const c = usable_cache();
  return c != nullptr ? c : thread_cache;
}

void* out_of_memory() noexcept {
  errno = ENOMEM;
  return nullptr;
}

bool stands_aside() noexcept {
  return required_allocator != nullptr && required_allocator() != nullptr;
}

namespace {

const ForeignHooks& hooks() noexcept {
  return stands_aside() ? *required_allocator() : foreign_hooks;
}

// Where requests end that the heap has nothing for.
__attribute__((noinline, cold)) void* allocate_elsewhere(size_t alignment, size_t size) noexcept {
  return stands_aside() ? hooks().allocate(alignment, size) : out_of_memory();
}

using cache::counted;
using cache::counters_of;
using counters::bump;
using counters::totals;

// A large block in a span that just became free, for a thread whose calls are not counted; null where there is none.
void* allocate_recent(ThreadCache& c, size_t size, size_t alignment) noexcept {
  void* const block = large::allocate_recent(size, alignment);
  if (block != nullptr) own_spans::note_recent(c);
  return block;
}
void* allocate_own_or_recent(ThreadCache& c, size_t size, size_t alignment) noexcept {
  void* const block = own_spans::take(c, size, alignment);
  return block != nullptr ? block : allocate_recent(c, size, alignment);
}

size_t usable_size_of_large(const void* block) noexcept {
  return large::usable_size(*region::unit_at(unit_index_of(block)));
}

void* allocate_large(ThreadCache* c, size_t size, size_t alignment, bool zeroed) noexcept {
  if (c == nullptr && !region_base) return nullptr;  // the heap could not be started
  const KeepErrno keep;
  if (!quarantines_spans && c != nullptr && alignment <= unit_size && size <= longest_own * unit_size) {
    void* const block = allocate_own_or_recent(*c, size, alignment);
    if (block != nullptr) {
      if (counted(c)) counters::count_large_malloc(c->counters, size, usable_size_of_large(block));
      return zeroed ? __builtin_memset(block, 0, usable_size_of_large(block)) : block;
    }
    own_spans::note_other(*c);
  } else if (c != nullptr) {
    own_spans::note_other_kind(*c);
  }
  if (c != nullptr) cache::make_way_for_large(*c, large::units_for(size));
  void* block = large::allocate(size, alignment, zeroed);
  if (block == nullptr && size <= options.reserve && give_back_idle(size + alignment)) [[unlikely]]
    block = large::allocate(size, alignment, zeroed);
  if (block != nullptr && counted(c)) counters::count_large_malloc(counters_of(c), size, usable_size_of_large(block));
  return block;
}

void* allocate_small(ThreadCache* c, unsigned size_class, size_t requested) noexcept {
  const auto take = [&] { return c != nullptr ? cache::take(*c, size_class) : cache::take_shared(size_class); };
  void* block = take();
  if (block == nullptr) [[unlikely]] {
    if (region::mutex().held_by_this_thread())
      block = c != nullptr ? cache::take_shared(size_class) : nullptr;
    else if (give_back_idle(requested))
      block = take();
  }
  if (block != nullptr && counted(c)) {
    counters::count_malloc(counters_of(c), size_class, requested);
    do_deferred_work();
  }
  return block;
}

enum class Kind { Small, Large, Guarded, Sampled, Foreign };

Kind kind_of(const void* block, unsigned* size_class) noexcept {
  const size_t unit = unit_index_of(block);
  if (unit >= region_range_units) return Kind::Foreign;
  const uint8_t byte = class_bytes()[unit];
  *size_class = byte / bin_stride;
  if (byte == class_byte_guarded) return Kind::Guarded;
  if (byte == class_byte_sampled) return Kind::Sampled;
  if (byte == class_byte_large) return large::find(block) != nullptr ? Kind::Large : Kind::Foreign;
  return byte != class_byte_none && byte < class_byte_large ? Kind::Small : Kind::Foreign;
}

// Effects: names memory of a frame that comes to free or realloc, where checks are asked for. Returns: whether it did.
bool report_frame(const char* what, const void* address) noexcept {
  if (!options.frame_checks && options.guard_rate == 0) return false;
  const size_t unit = unit_index_of(address);
  if (unit >= region_range_units || region::use_of(unit) != UnitState::Frame) return false;
  report_corruption(what, address);
  return true;
}

void free_foreign(void* block) noexcept {
  if (block == nullptr) return;
  bump(totals.foreign.frees);
  if (report_frame("invalid free: memory of a frame lies", block)) return;
  const ForeignHooks& other = hooks();
  if (other.free != nullptr && other.free(block))
    bump(totals.foreign.passed_to_libc);
  else if (checks_blocks)
    report_corruption("invalid free: no block of the heap begins", block);
}

void pass_on_free(void* block) noexcept {
  if (hooks().free != nullptr && hooks().free(block)) bump(totals.foreign.passed_to_libc);
}

void* reallocate_foreign(void* block, size_t size) noexcept {
  bump(totals.foreign.reallocs);
  if (report_frame("invalid realloc: memory of a frame lies", block)) return out_of_memory();
  size_t old_size = 0;
  const ForeignHooks& other = hooks();
  if (other.usable_size == nullptr || !other.usable_size(block, &old_size)) return out_of_memory();
  return move_block<allocate<allocate_slow>, pass_on_free>(block, old_size, size);
}

void free_guarded(void* block) noexcept {
  const sampling::Charge charge;
  const ThreadCache* const c = usable_cache();
  size_t size = 0;
  const uint32_t record = guarded::record_of(block);
  if (!guarded::free(block, &size)) return;
  if (record != profile::no_record) sampling::end_record(record);
  if (counted(c)) counters::count_large_free(counters_of(c), size);
}

void free_sampled(void* block) noexcept {
  const ThreadCache* const c = usable_cache();
  const unsigned size_class = profile::class_of(block);
  if (!profile::free(block, sampling::moment_of(c))) return report_corruption("double free", block);
  if (counted(c)) counters::count_free(counters_of(c), size_class);
}

void* reallocate_guarded(void* block, size_t size) noexcept {
  size_t old_size = 0;
  if (!guarded::require_live(block, &old_size)) return out_of_memory();
  const sampling::Moving moving(guarded::record_of(block), size);
  return move_own_block<allocate_slow>(block, old_size, size);
}

void* reallocate_sampled(void* block, size_t size) noexcept {
  const size_t old_size = class_sizes[profile::class_of(block)];
  if (!profile::is_live(block)) {
    report_corruption("invalid realloc: no live block begins", block);
    return out_of_memory();
  }
  const profile::RecordNumber record = profile::record_of(block);
  if (size <= old_size && (size > old_size / 2 || old_size <= min_alignment)) {
    profile::resize(record, size);
    return block;
  }
  const sampling::Moving moving(record, size);
  return move_own_block<allocate_slow>(block, old_size, size);
}

void* reallocate_large(void* block, size_t size) noexcept {
  const Unit& span = *large::find(block);
  const size_t old_size = large::usable_size(span);
  if (void* const resized = resize_large(block, size)) return resized;
  const sampling::Moving moving(span.large.record, size);
  return move_own_block<allocate_slow>(block, old_size, size);
}

__attribute__((noinline)) void* allocate_while_sampling(size_t size, ThreadCache* cache) noexcept {
  if (sampling::is_due(cache, size)) return allocate_or_guard(size, cache);
  if (is_medium(size) && cache->sampled_limit != 0) {
    if (void* const block = take_computed(size, cache)) return block;
  }
  return allocate_unsampled(size);
}

inline void* allocate_in_turn(size_t size, ThreadCache* cache) noexcept {
  return sampling::may_sample(cache) ? allocate_while_sampling(size, cache) : allocate_unsampled(size);
}

// Of a thread that has no cache yet. Apart, so that those that have one need no frame.
__attribute__((noinline, cold)) void* allocate_first(size_t size) noexcept {
  return allocate_in_turn(size, attached_cache());
}

// What now and then is left to do when a call was counted. Apart, so that the others need no frame.
__attribute__((noinline, cold)) void* finish_counted(void* block, unsigned size_class, ThreadCache* cache) noexcept {
  const KeepErrno keep;
  counters::hand_over(*cache->counters, size_class);
  do_deferred_work();
  return block;
}

// Whether counting alone shuts the gate, and nobody has asked the thread to sample.
inline bool counts_alone(const ThreadCache& c) noexcept {
  return c.mode.bits == CacheMode::Counting && !sampling::may_sample(&c);
}

// While calls are counted, and nothing else shuts the gate, malloc takes from the bins and free puts into them here, as
// the fast paths do. Null when the bin is empty, and where this does not serve.
inline void* take_while_counting(unsigned size_class, size_t size, ThreadCache* cache) noexcept {
  Counters* const own = cache->counters;
  Bin& bin = cache->bins[size_class];
  void* const block = bin.head;
  if (block == nullptr || own == nullptr || cache->lock.held_by_this_thread()) return nullptr;
  bin.head = next_of(block);
  keep_order();
  ++cache->gated_room[size_class];
  if (counters::count_own_malloc(*own, size_class, size) || has_deferred_work()) [[unlikely]]
    return finish_counted(block, size_class, cache);
  return block;
}

// Whether the block lies in its bin now, or is on its way to its slab.
inline bool put_while_counting(void* block, unsigned byte, ThreadCache* cache) noexcept {
  const unsigned size_class = byte / bin_stride;
  Counters* const own = cache->counters;
  if (byte == class_byte_none || byte >= class_byte_large || own == nullptr || cache->lock.held_by_this_thread())
    return false;
  if (cache->gated_room[size_class] > 0) {
    Bin& bin = cache->bins[size_class];
    set_next(block, bin.head);
    keep_order();
    bin.head = block;
    --cache->gated_room[size_class];
  } else if (!cache::set_aside_unseen(*cache, size_class, block)) {
    return false;
  }
  if (counters::count_own_free(*own, size_class)) [[unlikely]]
    counters::hand_over(*own, size_class);
  return true;
}

}  // namespace

void* allocate_slow(size_t size, ThreadCache* cache) noexcept {
  return allocate_slow_with(size, cache, ReturnNull{});
}

namespace {

// What the thread keeps for itself does not serve. Apart, so that what it keeps needs no frame.
__attribute__((noinline)) void* allocate_beyond_own(size_t size, ThreadCache* cache) noexcept {
  if (cache->small_limit == small_limit_when_open) {
    const KeepErrno keep;
    if (void* const block = allocate_recent(*cache, size, min_alignment)) return block;
  } else if (profiles_blocks && cache->profile.limit != 0 && size < PTRDIFF_MAX / 2) {
    const KeepErrno keep;
    if (void* const block =
            take_counted(size, cache, [=] { return allocate_own_or_recent(*cache, size, min_alignment); }))
      return block;
  }
  return allocate_rest(size, cache);
}

}  // namespace

// Aligned, as free_rest: where so few instructions begin changes what they take by a seventh.
__attribute__((aligned(64))) void* allocate_beyond(size_t size, ThreadCache* cache) noexcept {
  if (cache->small_limit == small_limit_when_open) {
    if (void* const block = own_spans::take(*cache, size, min_alignment)) return block;
  }
  return allocate_beyond_own(size, cache);
}

void* allocate_rest(size_t size, ThreadCache* cache) noexcept {
  if (!delays_reuse && size <= max_small_size) {
    if (cache->small_limit == small_limit_when_open) {
      if (void* const block = cache::take_spare(*cache, size_class_of(size))) return block;
    } else if (counts_alone(*cache)) {
      if (void* const block = take_while_counting(size_class_of(size), size, cache)) return block;
    }
  }
  return cache->attached ? allocate_in_turn(size, cache) : allocate_first(size);
}

void* allocate_or_guard(size_t size, ThreadCache* cache) noexcept {
  void* const block = sampling::allocate_due(*cache, size, min_alignment, false);
  return block != nullptr ? block : allocate_unsampled(size);
}

void* allocate_unsampled(size_t size) noexcept {
  ThreadCache* c = usable_cache();
  void* block;
  if (size <= max_small_size) {
    const KeepErrno keep;
    const unsigned size_class = size_class_of(size);
    const unsigned serving = c != nullptr ? cache::serving_class(*c, size_class) : size_class;
    block = allocate_small(c, serving, size);
    if (block == nullptr && serving != size_class) [[unlikely]]  // a slab of it is longer
      block = allocate_small(c, size_class, size);
  } else {
    block = allocate_large(c, size, min_alignment, false);
  }
  return block != nullptr ? block : allocate_elsewhere(min_alignment, size);
}

namespace {

// A program that frees large blocks alone has no slow calls of its caches.
void give_back_large(Unit* span) noexcept {
  if (span->large.record != profile::no_record) sampling::end_record(span->large.record);
  large::give_back(span);
  cache::look_if_due();
}

}  // namespace

void free_claimed(Unit* span) noexcept {
  const KeepErrno keep;
  if (const ThreadCache* const c = usable_cache(); counted(c))
    counters::count_large_free(counters_of(c), large::usable_size(*span));
  give_back_large(span);
}

namespace {

__attribute__((noinline)) void free_any(void* block) noexcept {
  const KeepErrno keep;
  unsigned size_class = 0;
  const Kind kind = kind_of(block, &size_class);
  if (kind == Kind::Foreign) return free_foreign(block);
  if (kind == Kind::Guarded) return free_guarded(block);
  if (kind == Kind::Sampled) return free_sampled(block);
  if (kind == Kind::Large) {
    Unit* const span = large::claim(block);
    if (span == nullptr) return report_corruption("double free", block);  // another thread was a little faster
    return free_claimed(span);
  }
  ThreadCache* c = usable_cache();
  if (counted(c)) counters::count_free(counters_of(c), size_class);
  if (c != nullptr)
    cache::put(*c, size_class, block);
  else
    cache::put_shared(block);
}

// A large block's span that its thread does not keep at once. Apart, so that one that it keeps needs no frame.
__attribute__((noinline)) void free_not_kept(size_t unit, Unit* span, ThreadCache& c) noexcept {
  const KeepErrno keep;
  if (!quarantines_spans && own_spans::look_in_turn(c) && own_spans::put(c, unit, span)) {
    region::purge_aged();  // else whoever gives spans back does
    return cache::look_if_due();
  }
  give_back_large(span);
}

// Frees what counted threads have no bin for: a large block as without counts, and all that is neither.
__attribute__((noinline)) void free_counted(void* block, size_t unit, ThreadCache* cache) noexcept {
  Unit* const span = cache->counters != nullptr ? large::find_in(unit, block) : nullptr;
  if (span == nullptr) return free_any(block);
  if (!large::claim_in(unit)) return report_corruption("double free", block);  // another thread was a little faster
  counters::count_large_free(cache->counters, large::usable_size(*span));
  if (quarantines_spans || !own_spans::put(*cache, unit, span)) free_not_kept(unit, span, *cache);
}

// Frees what lies in the region, and is no large block or is counted.
__attribute__((noinline)) void free_other(void* block, size_t unit, ThreadCache* cache) noexcept {
  if (delays_reuse || !cache->mode.has(CacheMode::Counting)) return free_any(block);
  if (!put_while_counting(block, class_bytes()[unit], cache)) free_counted(block, unit, cache);
}

}  // namespace

// What else it may be is not looked at where it is a large block that nobody counts.
__attribute__((aligned(64))) void free_rest(void* block, size_t unit, ThreadCache* cache) noexcept {
  Unit* const span = cache->attached && !cache->mode.has(CacheMode::Counting) ? large::find_in(unit, block) : nullptr;
  if (span == nullptr) return free_other(block, unit, cache);
  if (!large::claim_in(unit)) return report_corruption("double free", block);  // another thread was a little faster
  if (!quarantines_spans && own_spans::put(*cache, unit, span)) return;
  free_not_kept(unit, span, *cache);
}

void free_slow(void* block, size_t unit, ThreadCache* cache) noexcept {
  if (!free_to_full_bin(block, class_bytes()[unit], cache)) free_rest(block, unit, cache);
}

void free_unknown(void* block) noexcept {
  if (block != nullptr) free_any(block);
}

namespace {

__attribute__((noinline, cold)) void* clear_outside_slabs(void* block, size_t size, unsigned byte) noexcept {
  return __builtin_memset(block, 0, byte == class_byte_sampled ? class_sizes[profile::class_of(block)] : size);
}

// Clears what the program may use of a new block: of one of a class all of it, of others what was asked for.
inline void* clear(void* block, size_t size) noexcept {
  const size_t unit = unit_index_of(block);
  const unsigned byte = unit < region_range_units ? class_bytes()[unit] : unsigned{class_byte_none};
  const bool in_slab = byte != class_byte_none && byte < class_byte_large;
  if (!in_slab) [[unlikely]]
    return clear_outside_slabs(block, size, byte);
  return __builtin_memset(block, 0, class_sizes[byte / bin_stride]);
}

}  // namespace

void* allocate_zeroed(size_t count, size_t size) noexcept {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return out_of_memory();
  if (bytes > max_small_size) {
    void* const block = sampling::sample(attached_cache(), bytes, min_alignment, true);
    return block != nullptr ? block : allocate_zeroed_unsampled(bytes);
  }
  void* block = allocate(bytes);
  return block != nullptr ? clear(block, bytes) : nullptr;
}

void* allocate_zeroed_unsampled(size_t size) noexcept {
  void* block = allocate_large(usable_cache(), size, min_alignment, true);
  if (block == nullptr && stands_aside() && (block = allocate_elsewhere(min_alignment, size)) != nullptr)
    __builtin_memset(block, 0, size);
  return block != nullptr ? block : out_of_memory();
}

namespace {

// Apart, so that what the bins serve needs no frame.
__attribute__((noinline)) void* allocate_aligned_rest(size_t alignment, size_t size, unsigned size_class) noexcept {
  ThreadCache* const cache = attached_cache();
  if (!delays_reuse && size_class != 0 && counts_alone(*cache)) {
    if (void* const block = take_while_counting(size_class, size, cache)) return block;
  }
  if (void* const block = sampling::sample(cache, size, alignment, false)) return block;
  if (cache->sampled_limit != 0) {
    if (void* const block = take_aligned(size_class, cache)) return block;
  }
  return allocate_aligned_unsampled(alignment, size);
}

}  // namespace

void* allocate_aligned(size_t alignment, size_t size) noexcept {
  if (alignment <= min_alignment) return allocate(size);
  ThreadCache* const cache = thread_cache;
  const unsigned size_class = aligned_class_for(size, alignment);
  if (cache->small_limit == small_limit_when_open) {
    if (void* const block = take_aligned(size_class, cache)) return block;
  } else if (profiles_blocks && cache->profile.limit != 0 && size <= max_small_size) {
    if (void* const block = take_counted(size, cache, [=] { return take_aligned(size_class, cache); })) return block;
  }
  return allocate_aligned_rest(alignment, size, size_class);
}

void* allocate_aligned_unsampled(size_t alignment, size_t size) noexcept {
  void* block = nullptr;
  if (const unsigned size_class = aligned_class_for(size, alignment); size_class != 0) {
    const KeepErrno keep;
    block = allocate_small(usable_cache(), size_class, size);
  } else {
    block = allocate_large(usable_cache(), size != 0 ? size : 1, alignment, false);
  }
  return block != nullptr ? block : allocate_elsewhere(alignment, size);
}

void* resize_large(void* block, size_t size) noexcept {
  if (size <= max_small_size) return nullptr;
  Unit* span = large::find(block);
  const size_t old_size = large::usable_size(*span);
  ThreadCache* c = usable_cache();
  const KeepErrno keep;
  const uint32_t record = span->large.record;
  void* const resized = large::resize_in_place(span, size) ? block : large::move(span, size);
  if (resized != nullptr) sampling::sample_resized(c, *large::find(resized), record, size);
  if (resized != nullptr && counted(c))
    counters::count_large_resize(counters_of(c), size, old_size, large::usable_size(*large::find(resized)));
  return resized;
}

void* reallocate(void* block, size_t size) noexcept {
  return reallocate_with<allocate_slow, reallocate_rest>(block, size);
}

void* reallocate_rest(void* block, size_t size) noexcept {
  if (guarded::covers(block)) return reallocate_guarded(block, size);
  if (profile::covers(block)) return reallocate_sampled(block, size);
  return large::find(block) != nullptr ? reallocate_large(block, size) : reallocate_foreign(block, size);
}

size_t usable_size(const void* block) noexcept {
  unsigned size_class = 0;
  switch (kind_of(block, &size_class)) {
    case Kind::Small:
      return class_sizes[size_class];
    case Kind::Large:
      return large::usable_size(*large::find(block));
    case Kind::Guarded:
      return guarded::usable_size(block);
    case Kind::Sampled:
      return class_sizes[profile::class_of(block)];
    case Kind::Foreign:
      break;
  }
  size_t size = 0;
  if (block != nullptr) {
    bump(totals.foreign.usable_sizes);
    const ForeignHooks& other = hooks();
    if (other.usable_size != nullptr && other.usable_size(block, &size)) return size;
  }
  return 0;
}

void prepare_for_threads() noexcept {
  nodes::note_first();
  cache::note_several();
  if (ThreadCache* const c = usable_cache()) {
    own_spans::note_other_kind(*c);
    cache::share_long(*c);
  }
}

bool give_back_idle(size_t size) noexcept {
  if (region_base == nullptr || size > options.reserve) return false;  // hopeless
  if (region::mutex().held_by_this_thread()) return false;             // a signal handler
  cache::flush_idle();
  cache::collect_from_others(cache::Others::All);
  if (quarantines_spans) (void)quarantine::release_all();
  region::make_room(size);
  return true;
}

bool trim(size_t keep) noexcept {
  const KeepErrno keep_errno;
  if (region_base == nullptr || region::mutex().held_by_this_thread()) return false;  // the latter in a signal handler
  cache::flush_idle();
  cache::collect_from_others(cache::Others::All);
  cache::ask_for_flushes();
  if (quarantines_spans) (void)quarantine::release_all();
  const size_t bytes = region::purge_all(keep);
  // Whole spans are the more useful part of what stays.
  const size_t free = keep != 0 ? region::free_dirty_bytes() : 0;
  return bytes + cache::give_back_vacant(keep > free ? keep - free : 0) != 0;
}

void idle() noexcept {
  const KeepErrno keep_errno;
  if (region_base == nullptr || region::mutex().held_by_this_thread()) return;  // the latter in a signal handler
  cache::flush_own();
  cache::transfer::look();
  cache::transfer::look_at_common();
  cache::give_back_own_vacant();
  if (quarantines_spans) quarantine::purge_aged();
  (void)region::purge_all(0);
}

}  // namespace sluice::heap
