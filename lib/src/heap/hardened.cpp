// See hardened.hpp. Compiled into libsluice-secure.so alone.
#include "heap/hardened.hpp"

#include <bit>

#include "base/check.hpp"
#include "base/options.hpp"
#include "heap/guarded.hpp"
#include "heap/heap.hpp"
#include "heap/large.hpp"
#include "heap/sampling.hpp"
#include "heap/slab.hpp"
#include "os/memory.hpp"

namespace sluice {

constinit Secrets secrets{};

namespace {

constexpr size_t cleared_size =
    64;  // bytes of a freed block that are cleared and checked; all with SLUICE_ZERO_ON_FREE
constexpr size_t most_small = max_small_size - canary_size;

// SLUICE_ZERO_ON_FREE as it was at start: an option that is read later must not change what blocks that were freed
// before are checked for.
constinit bool clear_all = false;

using State = std::atomic<uint16_t>;

bool is_slab(unsigned byte) noexcept {
  return byte != class_byte_none && byte < class_byte_large;
}

// Where a block of a slab has its state. That is read and written by whoever has the block; the order comes from how
// the program hands blocks from thread to thread, and from the heap's own locks.
struct Place {
  State* state;
  size_t class_size;
  bool begins;  // the address is a block's first

  uint16_t state_now() const noexcept { return state->load(std::memory_order_relaxed); }
  void set_state(size_t value) const noexcept { state->store(static_cast<uint16_t>(value), std::memory_order_relaxed); }
};
bool is_live(uint16_t state) noexcept {
  return state >= canary_size;
}

// Requires: is_slab(byte), the class byte of the address's unit.
inline __attribute__((always_inline)) Place place_of(const void* address, unsigned byte) noexcept {
  constexpr unsigned last_of_one_unit = size_class_of(unit_size / slab_min_blocks);
  const unsigned size_class = byte / bin_stride;
  size_t index = unit_index_of(address);
  if (size_class > last_of_one_unit) index -= region::unit_at(index)->back;
  const auto offset = static_cast<size_t>(static_cast<const char*>(address) - region::address_of(index));
  const uint64_t quotient = offset * slab::reciprocals[size_class];
  return {region::block_states_at(index) + (quotient >> slab::reciprocal_shift), class_sizes[size_class],
          (quotient & slab::reciprocal_fraction) < slab::reciprocals[size_class]};
}

// A block's canary. No byte is 0, so that a string's end is found too.
inline uint64_t canary_of(const void* block) noexcept {
  const uint64_t mixed = (secrets.canary + reinterpret_cast<uintptr_t>(block)) * secrets.factor;
  return (mixed ^ (mixed >> 32)) | 0x8080808080808080u;
}

// Each byte of a canary has its place in a word, so that two that overlap agree.
inline uint64_t rotated_for(const char* at, uint64_t canary) noexcept {
  return std::rotr(canary, static_cast<int>(8 * (reinterpret_cast<uintptr_t>(at) % sizeof canary)));
}
inline void write_canary(char* at, uint64_t canary) noexcept {
  canary = rotated_for(at, canary);
  __builtin_memcpy(at, &canary, sizeof canary);
}
inline bool canary_holds(const char* at, uint64_t canary) noexcept {
  uint64_t found;
  __builtin_memcpy(&found, at, sizeof found);
  return found == rotated_for(at, canary);
}

// The last word of a block's class.
inline char* last_word(void* block, size_t class_size) noexcept {
  return static_cast<char*>(__builtin_assume_aligned(block, min_alignment)) + class_size - canary_size;
}
inline void write_last_canary(void* block, size_t class_size, uint64_t canary) noexcept {
  *reinterpret_cast<uint64_t*>(last_word(block, class_size)) = canary;
}
inline bool last_canary_holds(const void* block, size_t class_size, uint64_t canary) noexcept {
  return *reinterpret_cast<const uint64_t*>(last_word(const_cast<void*>(block), class_size)) == canary;
}

// 16 bytes at once.
using Granule = uint64_t __attribute__((vector_size(16), may_alias));
inline Granule& granule_at(const void* block, size_t offset) noexcept {
  return *reinterpret_cast<Granule*>(const_cast<char*>(static_cast<const char*>(block)) + offset);
}
inline size_t lesser(size_t a, size_t b) noexcept {
  return a < b ? a : b;
}

__attribute__((noinline)) void clear_rest(char* block, size_t class_size) noexcept {
  if (class_size > cleared_size) __builtin_memset(block + cleared_size, 0, class_size - cleared_size);
}

// Clears the first 64 bytes of a block, or all. Without a branch for its size: stores may overlap.
inline void clear_block(void* block, size_t class_size) noexcept {
  const size_t last = class_size - sizeof(Granule);
  granule_at(block, 0) = granule_at(block, lesser(16, last)) = granule_at(block, lesser(32, last)) =
      granule_at(block, lesser(48, last)) = Granule{};
  if (clear_all) [[unlikely]]
    clear_rest(static_cast<char*>(block), class_size);
}

__attribute__((noinline)) bool reads_as_zero(const char* from, const char* to) noexcept {
  for (; from != to; from += sizeof(Granule))
    if (const Granule words = granule_at(from, 0); (words[0] | words[1]) != 0) return false;
  return true;
}

// Whether a block that is not live is as clear() or free left it, but for the word of a list's link.
inline __attribute__((always_inline)) bool is_untouched(const void* block, size_t class_size,
                                                        uint64_t canary) noexcept {
  const size_t last = class_size - sizeof(Granule);
  uint64_t found = static_cast<const uint64_t*>(block)[1];
  if (last != 0) {
    const Granule words =
        granule_at(block, 16) | granule_at(block, lesser(32, last)) | granule_at(block, lesser(48, last));
    found |= words[0] | words[1];
  }
  if (class_size <= cleared_size) return found == 0;
  if (clear_all) [[unlikely]] {
    const auto* const bytes = static_cast<const char*>(block);
    return found == 0 && reads_as_zero(bytes + cleared_size, bytes + class_size);
  }
  return found == 0 && last_canary_holds(block, class_size, canary);
}

// "double free: 0x7f… is a block of 48 bytes"
__attribute__((noinline, cold)) void report(const char* what, const void* address, const char* is,
                                            size_t bytes) noexcept {
  Corruption(what)
      .out()
      .text(": 0x")
      .hexadecimal(reinterpret_cast<uintptr_t>(address))
      .text(is)
      .decimal(bytes)
      .text(" bytes");
}

// Effects: gives up a list whose first block was written to, and serves the request with another block.
__attribute__((noinline, cold)) void* replace_damaged_list(Bin& bin, size_t size) noexcept {
  (void)next_of(bin.head);
  bin.head = nullptr;
  return hardened::allocate(size);
}

// What is wrong with the address of a block that was to be freed or resized.
__attribute__((noinline, cold)) void report_small(const void* address, bool resized) noexcept {
  const Place place = place_of(address, class_bytes()[unit_index_of(address)]);
  const uint16_t state = place.state_now();
  const bool never_handed_out = state == state_new || state == state_clear;
  if (place.begins && !never_handed_out)
    return report(resized ? "realloc of a freed block" : "double free", address, " is a freed block of the class of ",
                  place.class_size);
  Corruption line(resized ? "invalid realloc" : "invalid free");
  line.out().text(": 0x").hexadecimal(reinterpret_cast<uintptr_t>(address));
  if (never_handed_out) {
    line.out().text(" lies in memory of the heap that was never handed out");
    return;
  }
  const Unit* s = slab::of(address);
  const char* const block = slab::block_at(s, slab::number_of(s, address));
  line.out().text(" lies ").decimal(static_cast<size_t>(static_cast<const char*>(address) - block));
  line.out().text(" bytes into a block of ").decimal(is_live(state) ? place.class_size - state : place.class_size);
  line.out().text(" bytes at 0x").hexadecimal(reinterpret_cast<uintptr_t>(block));
  line.out().text(is_live(state) ? "" : ", which was freed");
}

__attribute__((noinline, cold)) void report_overflow(const void* block, size_t size) noexcept {
  report("overflow", block, " was written to behind its end, a block of ", size);
}

__attribute__((noinline, cold)) void report_write_to_free(const void* block) noexcept {
  const unsigned byte = class_bytes()[unit_index_of(block)];
  report("write to free memory", block, " was written to while it was free, a block of the class of ",
         class_sizes[is_slab(byte) ? byte / bin_stride : 0]);
}

// Effects: leaves a block alone that was written to, and serves the request with another one.
__attribute__((noinline, cold)) void* replace_damaged(const void* block, size_t size) noexcept {
  report_write_to_free(block);
  return hardened::allocate(size);
}

__attribute__((noinline, cold)) void report_large(const void* address, bool resized) noexcept {
  const size_t index = unit_index_of(address);
  const Unit* unit = region::unit_at(index);
  const bool known = index >= region::first_index() && index < region::limit();
  if (known && region::address_of(index) == address && unit->state == UnitState::Large &&
      class_bytes()[index] == class_byte_none)
    return report(resized ? "realloc of a freed block" : "double free", address, " is a freed large block of ",
                  large::requested_bytes(*unit) - canary_size);
  report_corruption(resized ? "invalid realloc: no block begins" : "invalid free: no block begins", address);
}

// Makes a block of a slab live that the heap gave.
inline __attribute__((always_inline)) void* hand_out_small(void* block, size_t size, unsigned byte) noexcept {
  const Place place = place_of(block, byte);
  if (is_live(place.state_now())) [[unlikely]]
    fail_check("a block that is in use was handed out", block);
  const uint64_t canary = canary_of(block);
  if (!is_untouched(block, place.class_size, canary)) [[unlikely]]
    return replace_damaged(block, size);
  place.set_state(place.class_size - size);
  granule_at(block, 0) = Granule{};
  write_last_canary(block, place.class_size, canary);
  write_canary(static_cast<char*>(block) + size, canary);
  return block;
}

// Likewise one of any kind, also of another allocator that serves in place of this one.
void* hand_out(void* block, size_t size) noexcept {
  if (unit_index_of(block) >= region_window_units || guarded::covers(block)) return block;
  const unsigned byte = class_bytes()[unit_index_of(block)];
  if (is_slab(byte)) return hand_out_small(block, size, byte);
  write_canary(static_cast<char*>(block) + size, canary_of(block));
  return block;
}

// Whether the word where a list's link goes still is 0, of a block that leaves the quarantine.
inline bool has_no_link(const void* block) noexcept {
  return *static_cast<const uint64_t*>(block) == 0;
}

// Puts a block in place of one that has been in the quarantine for a while, which comes back.
void* exchange_quarantined(ThreadCache& c, void* block, size_t class_size) noexcept {
  SecureCache& quarantine = c.secure_part;
  void*& slot = class_size <= quarantine_small_size
                    ? quarantine.small[cache::random_below(c, SecureCache::small_slots)]
                    : quarantine.medium[cache::random_below(c, SecureCache::medium_slots)];
  void* const out = slot;
  slot = block;
  return out;
}

// With room for a canary, but where another allocator serves, which knows what was asked for.
size_t with_canary(size_t size) noexcept {
  return heap::stands_aside() ? size : size + canary_size;
}

void* allocate_large(size_t size) noexcept {
  if (size > PTRDIFF_MAX - canary_size) return heap::out_of_memory();
  void* const block = heap::allocate_unsampled(with_canary(size));
  return block != nullptr ? hand_out(block, size) : nullptr;
}

// What the short way does not serve.
__attribute__((noinline)) void* allocate_slow(size_t size, ThreadCache* cache) noexcept {
  if (size <= most_small) {
    if (void* const block = heap::take_unguarded(size + canary_size, cache)) return hand_out(block, size);
  }
  if (void* const block = sampling::sample(cache, size, min_alignment, false)) return block;
  if (size > most_small) return allocate_large(size);
  void* const block = heap::allocate_unsampled(with_canary(size));
  return block != nullptr ? hand_out(block, size) : nullptr;
}

__attribute__((noinline)) void free_rest(void* block) noexcept {
  const size_t index = unit_index_of(block);
  if (index >= region_window_units) return heap::free_unknown(block);
  if (guarded::covers(block)) return heap::free(block);
  const Unit* span = large::find(block);
  if (span == nullptr) return report_large(block, false);
  const size_t size = large::requested_bytes(*span) - canary_size;
  if (!canary_holds(static_cast<char*>(block) + size, canary_of(block))) [[unlikely]]
    report_overflow(block, size);
  heap::free(block);
}

// Whether a live block's canaries hold.
inline __attribute__((always_inline)) bool ends_hold(const void* block, size_t size, size_t class_size) noexcept {
  const uint64_t canary = canary_of(block);
  return canary_holds(static_cast<const char*>(block) + size, canary) && last_canary_holds(block, class_size, canary);
}

void* move_to_new(void* block, size_t old_size, size_t size) noexcept {
  void* const moved = hardened::allocate(size);
  if (moved == nullptr) return size <= old_size ? block : nullptr;
  __builtin_memcpy(moved, block, old_size < size ? old_size : size);
  hardened::free(block);
  return moved;
}

void* reallocate_guarded(void* block, size_t size) noexcept {
  size_t old_size = 0;
  return guarded::require_live(block, &old_size) ? move_to_new(block, old_size, size) : heap::out_of_memory();
}

void* reallocate_large(void* block, size_t size) noexcept {
  if (guarded::covers(block)) return reallocate_guarded(block, size);
  const Unit* span = large::find(block);
  if (span == nullptr) {
    report_large(block, true);
    return heap::out_of_memory();
  }
  const size_t old_size = large::requested_bytes(*span) - canary_size;
  if (!canary_holds(static_cast<char*>(block) + old_size, canary_of(block))) [[unlikely]]
    report_overflow(block, old_size);
  if (size <= most_small) return move_to_new(block, old_size, size);
  if (size > PTRDIFF_MAX - canary_size) return heap::out_of_memory();
  auto* const moved = static_cast<char*>(heap::resize_large(block, size + canary_size));
  if (moved == nullptr) return move_to_new(block, old_size, size);
  if (size > old_size)
    __builtin_memset(moved + old_size, 0, size - old_size < canary_size ? size - old_size : canary_size);
  write_canary(moved + size, canary_of(moved));
  return moved;
}

void* reallocate_foreign(void* block, size_t size) noexcept {
  const size_t old_size = heap::usable_size(block);
  if (old_size == 0) return heap::reallocate(block, size);  // counted, and fails
  void* const moved = hardened::allocate(size);
  if (moved == nullptr) return nullptr;
  __builtin_memcpy(moved, block, old_size < size ? old_size : size);
  heap::free_unknown(block);
  return moved;
}

}  // namespace

namespace link_detail {

void* report_damaged_link(const void* block) noexcept {
  report_write_to_free(block);
  return nullptr;
}

}  // namespace link_detail

namespace {

// Modulo 2^64, by Newton's method: three bits are right at first, and each step doubles them.
uintptr_t inverse_of(uintptr_t odd) noexcept {
  uintptr_t inverse = odd;
  for (int right = 3; right < 64; right *= 2)
    inverse *= 2 - odd * inverse;
  return inverse;
}

}  // namespace

namespace hardened {

void start() noexcept {
  clear_all = options.zero_on_free;
  secrets.link = os::secret_bits();
  secrets.canary = os::secret_bits();
  secrets.factor = os::secret_bits() | 1;
  secrets.inverse = inverse_of(secrets.factor);
}

void clear(void* block, std::atomic<uint16_t>& state, size_t class_size) noexcept {
  clear_block(block, class_size);
  if (class_size > cleared_size && !clear_all) write_last_canary(block, class_size, canary_of(block));
  state.store(state_clear, std::memory_order_relaxed);
}

void retire(const void* block, std::atomic<uint16_t>& state, size_t class_size) noexcept {
  if (!is_untouched(block, class_size, canary_of(block))) [[unlikely]]
    report_write_to_free(block);
  state.store(state_new, std::memory_order_relaxed);
}

// As heap::allocate, with everything checked on the way.
void* allocate(size_t size) noexcept {
  ThreadCache* const cache = thread_cache;
  const size_t needed = size + canary_size;
  if (size > max_direct_size - canary_size || needed >= cache->small_limit) [[unlikely]]
    return allocate_slow(size, cache);
  const unsigned byte = cache->bin_of[(needed + min_alignment - 1) / min_alignment];
  Bin& bin = cache->bins[byte / bin_stride];
  void* const block = bin.head;
  if (block == nullptr) [[unlikely]]
    return allocate_slow(size, cache);
  void* const next = link_detail::decode(block);
  if (!link_detail::may_follow(next, block)) [[unlikely]]
    return replace_damaged_list(bin, size);
  bin.head = next;
  ++bin.room;
  return hand_out_small(block, size, byte);
}

void free(void* block) noexcept {
  const size_t index = unit_index_of(block);
  const unsigned byte = index < region_window_units ? class_bytes()[index] : unsigned{class_byte_none};
  if (!is_slab(byte)) [[unlikely]]
    return free_rest(block);
  const Place place = place_of(block, byte);
  const uint16_t state = place.state_now();
  if (!is_live(state) || !place.begins) [[unlikely]]
    return report_small(block, false);
  if (!ends_hold(block, place.class_size - state, place.class_size)) [[unlikely]]
    return report_overflow(block, place.class_size - state);
  place.set_state(state_freed);
  clear_block(block, place.class_size);
  ThreadCache* const c = thread_cache;
  void* const out = c->attached ? exchange_quarantined(*c, block, place.class_size) : block;
  if (out == nullptr) return;
  if (!has_no_link(out)) [[unlikely]]
    return report_write_to_free(out);
  heap::free(out);
}

void* allocate_zeroed(size_t count, size_t size) noexcept {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX - canary_size) return heap::out_of_memory();
  if (bytes <= most_small) {
    void* const block = allocate(bytes);
    return block != nullptr ? __builtin_memset(block, 0, bytes) : nullptr;
  }
  if (void* const block = sampling::sample(thread_cache, bytes, min_alignment, true)) return block;
  void* const block = heap::allocate_zeroed_unsampled(with_canary(bytes));
  return block != nullptr ? hand_out(block, bytes) : nullptr;
}

void* allocate_aligned(size_t alignment, size_t size) noexcept {
  if (alignment <= min_alignment) return allocate(size);
  if (size > PTRDIFF_MAX - canary_size) return heap::out_of_memory();
  if (void* const block = sampling::sample(thread_cache, size, alignment, false)) return block;
  if (size == 0) size = 1;  // a state has 16 bits, and a block may be one of 64 KiB
  for (;;) {
    void* const found = heap::allocate_aligned_unsampled(alignment, with_canary(size));
    if (found == nullptr) return nullptr;
    void* const block = hand_out(found, size);
    if (block == nullptr || reinterpret_cast<uintptr_t>(block) % alignment == 0) return block;
    hardened::free(block);  // it replaces one that was written to
  }
}

void* reallocate(void* address, size_t size) noexcept {
  if (address == nullptr) return allocate(size);
  const size_t index = unit_index_of(address);
  if (index >= region_window_units) return reallocate_foreign(address, size);
  const unsigned byte = class_bytes()[index];
  if (!is_slab(byte)) return reallocate_large(address, size);
  const Place place = place_of(address, byte);
  const uint16_t state = place.state_now();
  if (!is_live(state) || !place.begins) [[unlikely]] {
    report_small(address, true);
    return heap::out_of_memory();
  }
  const size_t old_size = place.class_size - state;
  if (!ends_hold(address, old_size, place.class_size)) [[unlikely]] {
    report_overflow(address, old_size);
    return heap::out_of_memory();
  }
  const size_t needed = size + canary_size;
  const bool fits = size <= most_small && needed <= place.class_size &&
                    (needed > place.class_size / 2 || place.class_size <= min_alignment);
  if (!fits) return move_to_new(address, old_size, size);
  auto* const block = static_cast<char*>(address);
  const uint64_t canary = canary_of(block);
  __builtin_memset(block + old_size, 0, canary_size);
  place.set_state(place.class_size - size);
  write_last_canary(block, place.class_size, canary);
  write_canary(block + size, canary);
  return block;
}

size_t usable_size(const void* address) noexcept {
  const size_t index = unit_index_of(address);
  if (index >= region_window_units) return heap::usable_size(address);
  const unsigned byte = class_bytes()[index];
  if (!is_slab(byte)) {
    const Unit* span = large::find(address);
    return span != nullptr ? large::requested_bytes(*span) - canary_size : heap::usable_size(address);
  }
  const Place place = place_of(address, byte);
  const uint16_t state = place.state_now();
  return place.begins && is_live(state) ? place.class_size - state : 0;
}

}  // namespace hardened
}  // namespace sluice
