// See hardened.hpp. Compiled into libsluice-secure.so alone.
#include "heap/hardened.hpp"

#include <bit>

#include "base/check.hpp"
#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap/large.hpp"
#include "heap/slab.hpp"
#include "os/memory.hpp"

namespace sluice {

constinit Secrets secrets{};

namespace {

constexpr size_t cleared_size =
    64;  // bytes of a freed block that are cleared and checked; all with SLUICE_ZERO_ON_FREE
constexpr size_t most_small = max_small_size - canary_size;

using State = std::atomic<uint16_t>;

// A block of a slab. Its state is read and written by whoever has the block; the order comes from how the program hands
// blocks from thread to thread, and the heap's own locks.
struct SmallBlock {
  char* address;
  State* state;
  size_t class_size;

  uint16_t state_now() const noexcept { return state->load(std::memory_order_relaxed); }
  void set_state(size_t value) const noexcept { state->store(static_cast<uint16_t>(value), std::memory_order_relaxed); }
  bool is_live() const noexcept { return state_now() >= canary_size; }
  size_t size() const noexcept { return class_size - state_now(); }  // requires: is_live()
  char* last_canary() const noexcept { return address + class_size - canary_size; }
};

bool is_slab(unsigned byte) noexcept {
  return byte != class_byte_none && byte < class_byte_large;
}

// The block that an address lies in. Requires: is_slab(byte), the class byte of its unit.
SmallBlock small_block_of(const void* address, unsigned byte) noexcept {
  const Unit* s = slab::of(address);
  const size_t number = slab::number_of(s, address);
  return {slab::block_at(s, number), region::block_states_at(region::index_of(s)) + number,
          class_sizes[byte / bin_stride]};
}

// A block's canary. No byte is 0, so that a string's end is found too.
uint64_t canary_of(const void* block) noexcept {
  const uint64_t mixed = (secrets.canary + reinterpret_cast<uintptr_t>(block)) * secrets.seal;
  return (mixed ^ (mixed >> 32)) | 0x8080808080808080u;
}

// Each byte of a canary has its place in a word, so that two that overlap agree.
uint64_t rotated_for(const char* at, uint64_t canary) noexcept {
  return std::rotr(canary, static_cast<int>(8 * (reinterpret_cast<uintptr_t>(at) % sizeof canary)));
}
void write_canary(char* at, uint64_t canary) noexcept {
  canary = rotated_for(at, canary);
  __builtin_memcpy(at, &canary, sizeof canary);
}
bool canary_holds(const char* at, uint64_t canary) noexcept {
  uint64_t found;
  __builtin_memcpy(&found, at, sizeof found);
  return found == rotated_for(at, canary);
}

size_t cleared_bytes(size_t class_size) noexcept {
  return class_size <= cleared_size || options.zero_on_free ? class_size : cleared_size;
}

// Whether a block that is not live is as clear() or free left it, but for the two words of a list's link.
bool is_untouched(const char* block, size_t class_size) noexcept {
  const size_t bytes = cleared_bytes(class_size);
  uint64_t bits = 0;
  for (size_t at = sizeof(link_detail::Link); at < bytes; at += sizeof(uint64_t)) {
    uint64_t word;
    __builtin_memcpy(&word, block + at, sizeof word);
    bits |= word;
  }
  return bits == 0 && (bytes == class_size || canary_holds(block + class_size - canary_size, canary_of(block)));
}

// Clears a block. Its last bytes stay a canary, if they are not cleared.
void clear_block(char* block, size_t class_size) noexcept {
  if (class_size <= cleared_size)
    __builtin_memset(block, 0, class_size);
  else
    __builtin_memset(block, 0, options.zero_on_free ? class_size : cleared_size);
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

__attribute__((noinline, cold)) void report_small(const void* address, const SmallBlock& block, bool resized) noexcept {
  const bool never_handed_out = block.state_now() == state_new || block.state_now() == state_clear;
  if (block.address != address || never_handed_out) {
    Corruption line(resized ? "invalid realloc" : "invalid free");
    line.out().text(": 0x").hexadecimal(reinterpret_cast<uintptr_t>(address));
    if (never_handed_out) {
      line.out().text(" lies in memory of the heap that was never handed out");
      return;
    }
    const auto offset = static_cast<size_t>(static_cast<const char*>(address) - block.address);
    line.out().text(" lies ").decimal(offset).text(" bytes into a block of ");
    line.out().decimal(block.is_live() ? block.size() : block.class_size).text(" bytes at 0x");
    line.out().hexadecimal(reinterpret_cast<uintptr_t>(block.address));
    line.out().text(block.is_live() ? "" : ", which was freed");
  } else {
    report(resized ? "realloc of a freed block" : "double free", address, " is a freed block of the class of ",
           block.class_size);
  }
}

__attribute__((noinline, cold)) void report_overflow(const void* block, size_t size) noexcept {
  report("overflow", block, " was written to behind its end, a block of ", size);
}

__attribute__((noinline, cold)) void report_write_to_free(const void* block, size_t class_size) noexcept {
  report("write to free memory", block, " was written to while it was free, a block of the class of ", class_size);
}

__attribute__((noinline, cold)) void report_large(const void* address, bool resized) noexcept {
  const size_t index = unit_index_of(address);
  const Unit* unit = region::unit_at(index);
  const bool begins = index < region::limit() && region::address_of(index) == address;
  if (begins && unit->state == UnitState::Large && class_bytes()[index] == class_byte_none)
    return report(resized ? "realloc of a freed block" : "double free", address, " is a freed large block of ",
                  large::requested_bytes(*unit) - canary_size);
  report_corruption(resized ? "invalid realloc: no block begins" : "invalid free: no block begins", address);
}

// Makes a block that the heap gave live.
char* hand_out(char* address, size_t size) noexcept {
  const unsigned byte = class_bytes()[unit_index_of(address)];
  const uint64_t canary = canary_of(address);
  if (!is_slab(byte)) {  // large
    write_canary(address + size, canary);
    return address;
  }
  const SmallBlock block = small_block_of(address, byte);
  if (block.is_live()) [[unlikely]]
    fail_check("a block that is in use was handed out", address);
  if (!is_untouched(address, block.class_size)) [[unlikely]]
    report_write_to_free(address, block.class_size);
  __builtin_memset(address, 0, sizeof(link_detail::Link));
  block.set_state(block.class_size - size);
  write_canary(address + size, canary);
  write_canary(block.last_canary(), canary);
  return address;
}

// Whether the words where a list's link goes still are 0, of a block that leaves the quarantine.
bool has_no_link(const void* block) noexcept {
  link_detail::Link link;
  __builtin_memcpy(&link, block, sizeof link);
  return (link.encoded | link.seal) == 0;
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

void* allocate_large(size_t size) noexcept {
  if (size > PTRDIFF_MAX - canary_size) return heap::out_of_memory();
  auto* block = static_cast<char*>(heap::allocate_slow(size + canary_size, thread_cache));
  return block != nullptr ? hand_out(block, size) : nullptr;
}

__attribute__((noinline)) void free_rest(void* block) noexcept {
  const size_t index = unit_index_of(block);
  if (index >= region_window_units) return heap::free_unknown(block);
  const Unit* span = large::find(block);
  if (span == nullptr) return report_large(block, false);
  const size_t size = large::requested_bytes(*span) - canary_size;
  if (!canary_holds(static_cast<char*>(block) + size, canary_of(block))) [[unlikely]]
    report_overflow(block, size);
  heap::free(block);
}

// Checks a live block's end, and says how long it is. False when it must be left alone.
bool check_live(const void* address, const SmallBlock& block, bool resized) noexcept {
  if (block.address != address || !block.is_live()) [[unlikely]] {
    report_small(address, block, resized);
    return false;
  }
  const uint64_t canary = canary_of(address);
  if (!canary_holds(block.address + block.size(), canary) || !canary_holds(block.last_canary(), canary)) [[unlikely]] {
    report_overflow(address, block.size());
    return false;
  }
  return true;
}

void* move_to_new(void* block, size_t old_size, size_t size) noexcept {
  void* const moved = hardened::allocate(size);
  if (moved == nullptr) return nullptr;
  __builtin_memcpy(moved, block, old_size < size ? old_size : size);
  hardened::free(block);
  return moved;
}

void* reallocate_large(void* block, size_t size) noexcept {
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
  auto* const moved = static_cast<char*>(heap::reallocate(block, size + canary_size));
  if (moved == nullptr) return nullptr;
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
  const unsigned byte = class_bytes()[unit_index_of(block)];
  report_write_to_free(block, class_sizes[is_slab(byte) ? byte / bin_stride : 0]);
  return nullptr;
}

}  // namespace link_detail

namespace hardened {

void start() noexcept {
  secrets.link = os::secret_bits();
  secrets.seal = os::secret_bits() | 1;
  secrets.canary = os::secret_bits();
}

void clear(void* block, std::atomic<uint16_t>& state, size_t class_size) noexcept {
  auto* const address = static_cast<char*>(block);
  clear_block(address, class_size);
  if (cleared_bytes(class_size) != class_size) write_canary(address + class_size - canary_size, canary_of(block));
  state.store(state_clear, std::memory_order_relaxed);
}

void retire(const void* block, std::atomic<uint16_t>& state, size_t class_size) noexcept {
  if (!is_untouched(static_cast<const char*>(block), class_size)) [[unlikely]]
    report_write_to_free(block, class_size);
  state.store(state_new, std::memory_order_relaxed);
}

void* allocate(size_t size) noexcept {
  if (size > most_small) [[unlikely]]
    return allocate_large(size);
  auto* const block = static_cast<char*>(heap::allocate(size + canary_size));
  return block != nullptr ? hand_out(block, size) : nullptr;
}

void free(void* address) noexcept {
  const size_t index = unit_index_of(address);
  const unsigned byte = index < region_window_units ? class_bytes()[index] : unsigned{class_byte_none};
  if (!is_slab(byte)) [[unlikely]]
    return free_rest(address);
  const SmallBlock block = small_block_of(address, byte);
  if (!check_live(address, block, false)) [[unlikely]]
    return;
  block.set_state(state_freed);
  clear_block(block.address, block.class_size);
  ThreadCache* const c = thread_cache;
  void* const out = c->attached ? exchange_quarantined(*c, address, block.class_size) : address;
  if (out == nullptr) return;
  if (!has_no_link(out)) [[unlikely]]
    report_write_to_free(out, class_sizes[class_bytes()[unit_index_of(out)] / bin_stride]);
  heap::free(out);
}

void* allocate_zeroed(size_t count, size_t size) noexcept {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX - canary_size) return heap::out_of_memory();
  if (bytes <= most_small) {
    void* const block = allocate(bytes);
    return block != nullptr ? __builtin_memset(block, 0, bytes) : nullptr;
  }
  auto* const block = static_cast<char*>(heap::allocate_zeroed(1, bytes + canary_size));
  return block != nullptr ? hand_out(block, bytes) : nullptr;
}

void* allocate_aligned(size_t alignment, size_t size) noexcept {
  if (alignment <= min_alignment) return allocate(size);
  if (size > PTRDIFF_MAX - canary_size) return heap::out_of_memory();
  if (size == 0) size = 1;  // a state has 16 bits, and a block may be one of 64 KiB
  auto* const block = static_cast<char*>(heap::allocate_aligned(alignment, size + canary_size));
  return block != nullptr ? hand_out(block, size) : nullptr;
}

void* reallocate(void* address, size_t size) noexcept {
  if (address == nullptr) return allocate(size);
  const size_t index = unit_index_of(address);
  if (index >= region_window_units) return reallocate_foreign(address, size);
  const unsigned byte = class_bytes()[index];
  if (!is_slab(byte)) return reallocate_large(address, size);
  const SmallBlock block = small_block_of(address, byte);
  if (!check_live(address, block, true)) [[unlikely]]
    return heap::out_of_memory();
  const size_t old_size = block.size();
  const bool fits = size <= most_small && size + canary_size <= block.class_size &&
                    (size + canary_size > block.class_size / 2 || block.class_size <= min_alignment);
  if (!fits) return move_to_new(address, old_size, size);
  __builtin_memset(block.address + old_size, 0, canary_size);
  block.set_state(block.class_size - size);
  write_canary(block.address + size, canary_of(address));
  write_canary(block.last_canary(), canary_of(address));
  return address;
}

size_t usable_size(const void* address) noexcept {
  const size_t index = unit_index_of(address);
  if (index >= region_window_units) return heap::usable_size(address);
  const unsigned byte = class_bytes()[index];
  if (!is_slab(byte)) {
    const Unit* span = large::find(address);
    return span != nullptr ? large::requested_bytes(*span) - canary_size : heap::usable_size(address);
  }
  const SmallBlock block = small_block_of(address, byte);
  return block.address == address && block.is_live() ? block.size() : 0;
}

}  // namespace hardened
}  // namespace sluice
