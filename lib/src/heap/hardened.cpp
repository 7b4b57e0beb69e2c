// See hardened.hpp. Compiled into libsluice-secure.so alone.
#include "heap/hardened.hpp"

#include <array>
#include <bit>
#include <utility>

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
constexpr size_t most_waiting = 1024;  // bytes of a block that may wait to be checked
constexpr size_t most_small = max_small_size - canary_size;

// SLUICE_ZERO_ON_FREE as it was at start: an option that is read later must not change what blocks that were freed
// before are checked for.
constinit bool clear_all = false;

// Class bytes up to this one are of slabs of one unit, and what is cleared of their blocks is the first 64 bytes: the
// short way. 0 with SLUICE_ZERO_ON_FREE.
constexpr unsigned last_of_one_unit = size_class_of(unit_size / slab_min_blocks);
constinit unsigned last_plain_byte = class_byte_of(last_of_one_unit);

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

// What the short way needs of a class, so that it branches nowhere by size. Within one unit an offset has 16 bits: a
// block's number is offset * reciprocal >> 32, and what is behind the point is less than one reciprocal for a block's
// first byte alone.
struct ClassRow {
  uint32_t reciprocal;
  uint16_t size;
  uint8_t granules[3];  // offsets of what is cleared besides the first granule; they may overlap
  int8_t keeps_last;    // all ones if the block's last word is not cleared
  uint16_t first_slot;  // of the quarantine
  uint16_t slots;
};
constexpr ClassRow row_of_size(uint32_t size) noexcept {
  const bool small = size <= quarantine_small_size;
  ClassRow row{};
  row.reciprocal = static_cast<uint32_t>(((uint64_t{1} << 32) + size - 1) / size);
  row.size = static_cast<uint16_t>(size);
  for (uint32_t i = 0; i < 3; ++i)
    row.granules[i] = static_cast<uint8_t>(size >= 16 * (i + 2) ? 16 * (i + 1) : size - 16);
  row.keeps_last = size > cleared_size ? -1 : 0;
  row.first_slot = small ? 0 : SecureCache::small_slots;
  row.slots = small ? SecureCache::small_slots : SecureCache::medium_slots;
  return row;
}
constexpr auto class_rows = [] {
  std::array<ClassRow, last_of_one_unit + 1> rows{};
  for (unsigned k = 1; k < rows.size(); ++k)
    rows[k] = row_of_size(class_sizes[k]);
  return rows;
}();
static_assert(unit_size == size_t{1} << 16 && unit_size / slab_min_blocks <= size_t{1} << 13);

// Class bytes count words: a scaled index reaches a row, and a bin, without computing the class.
inline const ClassRow& row_of(size_t byte) noexcept {
  static_assert(sizeof(ClassRow) == bin_stride * sizeof(void*));
  return *reinterpret_cast<const ClassRow*>(reinterpret_cast<void* const*>(class_rows.data()) + byte);
}
inline Bin& bin_at(ThreadCache* c, size_t byte) noexcept {
  return *reinterpret_cast<Bin*>(reinterpret_cast<void**>(c->bins) + byte);
}

__attribute__((noinline)) Place place_in_long_slab(const void* address, unsigned size_class) noexcept {
  size_t index = unit_index_of(address);
  index -= region::unit_at(index)->back;
  const auto offset = static_cast<size_t>(static_cast<const char*>(address) - region::address_of(index));
  const uint64_t quotient = offset * slab::reciprocals[size_class];
  return {region::block_states_at(index) + (quotient >> slab::reciprocal_shift), class_sizes[size_class],
          (quotient & slab::reciprocal_fraction) < slab::reciprocals[size_class]};
}

// Requires: the class byte of the address's unit, of a slab; with `plain` it is at most last_plain_byte.
template <bool plain = false>
inline __attribute__((always_inline)) Place place_of(const void* address, unsigned byte) noexcept {
  if (!plain && byte > class_byte_of(last_of_one_unit)) return place_in_long_slab(address, byte / bin_stride);
  const ClassRow& row = row_of(byte);
  const uint64_t quotient = reinterpret_cast<uintptr_t>(address) % unit_size * row.reciprocal;
  return {region::block_states_at(unit_index_of(address)) + (quotient >> 32), row.size,
          static_cast<uint32_t>(quotient) < row.reciprocal};
}

// A block's canary. No byte is 0, so that a string's end is found too. What a product spreads best, its highest bits,
// are the first byte.
inline uint64_t canary_of(const void* block) noexcept {
  const uint64_t mixed = (secrets.canary + reinterpret_cast<uintptr_t>(block)) * secrets.factor;
  return __builtin_bswap64(mixed) | 0x8080808080808080u;
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

// Clears the first 64 bytes of a block, or all.
inline void clear_block(void* block, size_t class_size) noexcept {
  const size_t last = class_size - sizeof(Granule);
  for (const size_t offset : {size_t{0}, size_t{16}, size_t{32}, size_t{48}})
    granule_at(block, lesser(offset, last)) = Granule{};
  if (clear_all) clear_rest(static_cast<char*>(block), class_size);
}
inline __attribute__((always_inline)) void clear_plain(void* block, const ClassRow& row) noexcept {
  granule_at(block, 0) = granule_at(block, row.granules[0]) = granule_at(block, row.granules[1]) =
      granule_at(block, row.granules[2]) = Granule{};
}

__attribute__((noinline)) bool reads_as_zero(const char* from, const char* to) noexcept {
  for (; from != to; from += sizeof(Granule))
    if (const Granule words = granule_at(from, 0); (words[0] | words[1]) != 0) return false;
  return true;
}

// Whether a block that is not live is as clear() or free left it, but for the word of a list's link.
bool is_untouched(const void* block, size_t class_size, uint64_t canary) noexcept {
  const auto* const bytes = static_cast<const char*>(block);
  const size_t end = clear_all ? class_size : lesser(class_size, cleared_size);
  if (static_cast<const uint64_t*>(block)[1] != 0 || !reads_as_zero(bytes + min_alignment, bytes + end)) return false;
  return end == class_size || last_canary_holds(block, class_size, canary);
}
// Also clears the first granule, which of a block of 16 bytes is read again.
inline __attribute__((always_inline)) bool clear_if_untouched(void* block, const ClassRow& row,
                                                              uint64_t canary) noexcept {
  const uint64_t second = static_cast<const uint64_t*>(block)[1];
  granule_at(block, 0) = Granule{};
  const Granule words =
      granule_at(block, row.granules[0]) | granule_at(block, row.granules[1]) | granule_at(block, row.granules[2]);
  const uint64_t kept = canary & static_cast<uint64_t>(int64_t{row.keeps_last});
  uint64_t last;
  __builtin_memcpy(&last, last_word(block, row.size), sizeof last);
  return (second | words[0] | words[1] | (last ^ kept)) == 0;
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

// Makes a block of a slab live that the heap gave, and that reads as it should but for its first granule.
inline __attribute__((always_inline)) void* make_live(void* block, size_t size, const Place& place,
                                                      uint64_t canary) noexcept {
  place.set_state(place.class_size - size);
  granule_at(block, 0) = Granule{};
  write_last_canary(block, place.class_size, canary);
  write_canary(static_cast<char*>(block) + size, canary);
  return block;
}

void* hand_out_small(void* block, size_t size, unsigned byte) noexcept {
  const Place place = place_of(block, byte);
  if (is_live(place.state_now())) [[unlikely]]
    fail_check("a block that is in use was handed out", block);
  const uint64_t canary = canary_of(block);
  if (!is_untouched(block, place.class_size, canary)) [[unlikely]]
    return replace_damaged(block, size);
  return make_live(block, size, place, canary);
}

inline __attribute__((always_inline)) void* hand_out_plain(void* block, size_t size, unsigned byte) noexcept {
  const Place place = place_of<true>(block, byte);
  if (is_live(place.state_now())) [[unlikely]]
    fail_check("a block that is in use was handed out", block);
  const uint64_t canary = canary_of(block);
  if (!clear_if_untouched(block, row_of(byte), canary)) [[unlikely]]
    return replace_damaged(block, size);
  return make_live(block, size, place, canary);
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

// A block that leaves the quarantine, and its class byte.
struct Leaving {
  void* block;
  unsigned byte;
};

// Puts a block in place of one that has been in the quarantine for a while, which comes back.
inline __attribute__((always_inline)) Leaving exchange_quarantined(ThreadCache& c, void* block, unsigned byte,
                                                                   uint32_t first_slot, uint32_t slots) noexcept {
  SecureCache& part = c.secure_part;
  const uint32_t i = first_slot + cache::random_below(c, slots);
  const Leaving out{part.quarantine[i], part.class_bytes[i]};
  part.quarantine[i] = block;
  part.class_bytes[i] = static_cast<uint8_t>(byte);
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

// Effects: ends the life of a block that is to be freed. Returns: the state that it had, or 0 when it was not live.
// Requires: as place_of.
inline __attribute__((always_inline)) uint16_t end_life(const void* block, const Place& place) noexcept {
  const uint16_t state = place.state_now();
  if (!is_live(state) || !place.begins) [[unlikely]]
    return report_small(block, false), uint16_t{0};
  place.set_state(state_freed);
  return state;
}

// Effects: checks the ends of a block whose life has ended and clears it. False when it must not be used again.
template <bool plain = false>
inline __attribute__((always_inline)) bool check_and_clear(void* block, unsigned byte, size_t class_size,
                                                           uint16_t state) noexcept {
  if (!ends_hold(block, class_size - state, class_size)) [[unlikely]]
    return report_overflow(block, class_size - state), false;
  if (plain)
    clear_plain(block, row_of(byte));
  else
    clear_block(block, class_size);
  return true;
}

template <bool plain = false>
inline __attribute__((always_inline)) bool end_and_clear(void* block, unsigned byte) noexcept {
  const Place place = place_of<plain>(block, byte);
  const uint16_t state = end_life(block, place);
  return state != 0 && check_and_clear<plain>(block, byte, place.class_size, state);
}

__attribute__((noinline)) void free_to_heap(void* block) noexcept {
  heap::free(block);
}

// Puts a block that has been cleared into the quarantine; what leaves it goes to its bin. Requires: the cache is
// attached.
template <bool plain = false>
inline __attribute__((always_inline)) void set_aside(void* block, unsigned byte, ThreadCache* c) noexcept {
  const ClassRow& row =
      row_of(plain || byte <= class_byte_of(last_of_one_unit) ? byte : class_byte_of(last_of_one_unit));
  const Leaving out = exchange_quarantined(*c, block, byte, row.first_slot, row.slots);
  if (out.block == nullptr) return;
  if (!has_no_link(out.block)) [[unlikely]]
    return report_write_to_free(out.block);
  Bin& bin = bin_at(c, out.byte);
  if (bin.room <= 0) [[unlikely]]
    return free_to_heap(out.block);
  --bin.room;
  set_next(out.block, bin.head);
  bin.head = out.block;
}

// Requires: as place_of; the cache is attached.
template <bool plain = false>
inline __attribute__((always_inline)) void free_checked(void* block, unsigned byte, ThreadCache* c) noexcept {
  if (end_and_clear<plain>(block, byte)) [[likely]]
    set_aside<plain>(block, byte, c);
}

inline void free_waiting(WaitingBlock waiting, ThreadCache* c) noexcept {
  if (hardened::end(waiting)) [[likely]]
    set_aside(waiting.block(), class_bytes()[unit_index_of(waiting.block())], c);
}

// A thread that frees more than its cache takes most likely frees what the processor has not at hand: a whole structure
// is torn down. Then a block is freed at once, as its state says, but waits until 16 more have come, while its first
// line and its last are fetched.
//
// Static caches have no room ever: all of their threads come here. Requires: is_slab(byte).
__attribute__((noinline)) void free_to_full(void* block, unsigned byte, ThreadCache* c) noexcept {
  const unsigned size_class = byte / bin_stride;
  if (!c->attached) {
    if (end_and_clear(block, byte)) heap::free(block);
    return;
  }
  if (c->gated || c->spare[size_class] == nullptr || class_sizes[size_class] > most_waiting)
    return free_checked(block, byte, c);
  const Place place = place_of(block, byte);
  __builtin_prefetch(block, 1);
  __builtin_prefetch(static_cast<char*>(block) + place.class_size - canary_size);
  const uint16_t state = end_life(block, place);
  if (state == 0) [[unlikely]]
    return;
  SecureCache& part = c->secure_part;
  const WaitingBlock oldest = part.waiting[part.next_waiting];
  part.waiting[part.next_waiting] = WaitingBlock(block, state);
  part.next_waiting = (part.next_waiting + 1) % SecureCache::waiting_slots;
  if (oldest) free_waiting(oldest, c);
}

// All but the short way.
__attribute__((noinline)) void free_other(void* block, unsigned byte) noexcept {
  if (is_slab(byte))
    free_to_full(block, byte, thread_cache);
  else
    free_rest(block);
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
  if (clear_all) last_plain_byte = 0;
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
  Bin& bin = bin_at(cache, byte);
  void* const block = bin.head;
  if (block == nullptr || clear_all) [[unlikely]]
    return allocate_slow(size, cache);
  void* const next = link_detail::decode(block);
  if (!link_detail::may_follow(next, block)) [[unlikely]]
    return replace_damaged_list(bin, size);
  bin.head = next;
  ++bin.room;
  return hand_out_plain(block, size, byte);
}

bool end(WaitingBlock waiting) noexcept {
  void* const block = waiting.block();
  const unsigned byte = class_bytes()[unit_index_of(block)];
  return check_and_clear(block, byte, class_sizes[byte / bin_stride], waiting.state());
}

void adopt_quarantine(ThreadCache& c) noexcept {
  SecureCache& part = c.secure_part;
  for (unsigned i = 0; i < SecureCache::slots; ++i)
    if (part.quarantine[i] != nullptr) part.class_bytes[i] = class_bytes()[unit_index_of(part.quarantine[i])];
}

void check_waiting() noexcept {
  ThreadCache* const c = thread_cache;
  if (!c->attached || c->lock.held_by_this_thread()) return;
  for (WaitingBlock& slot : c->secure_part.waiting)
    if (const WaitingBlock waiting = std::exchange(slot, WaitingBlock())) free_waiting(waiting, c);
}

void free(void* block) noexcept {
  const size_t index = unit_index_of(block);
  const unsigned byte = index < region_window_units ? class_bytes()[index] : unsigned{class_byte_none};
  if (byte - 1 >= last_plain_byte) [[unlikely]]
    return free_other(block, byte);
  ThreadCache* const c = thread_cache;
  if (bin_at(c, byte).room <= 0) [[unlikely]]
    return free_to_full(block, byte, c);
  free_checked<true>(block, byte, c);
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
