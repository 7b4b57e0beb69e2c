// See block_state.hpp. Compiled into libsluice-secure.so alone.
#include "heap/block_state.hpp"

#include "base/options.hpp"
#include "heap/slab_shape.hpp"

namespace sluice::hardened {

constinit unsigned last_plain_byte = class_byte_of(last_of_one_unit);

Place place_in_long_slab(const void* address, unsigned size_class) noexcept {
  size_t index = unit_index_of(address);
  index -= region::unit_at(index)->slab.back;
  const auto offset = static_cast<size_t>(static_cast<const char*>(address) - region::address_of(index));
  const uint64_t quotient = offset * slab::reciprocals[size_class];
  return {region::block_states_at(index) + (quotient >> slab::reciprocal_shift), class_sizes[size_class],
          (quotient & slab::reciprocal_fraction) < slab::reciprocals[size_class]};
}

void clear_rest(char* block, size_t class_size) noexcept {
  if (class_size > cleared_size) __builtin_memset(block + cleared_size, 0, class_size - cleared_size);
}

bool is_untouched(const void* block, size_t class_size, uint64_t canary) noexcept {
  const auto* const bytes = static_cast<const char*>(block);
  const size_t end = clear_all ? class_size : lesser(class_size, cleared_size);
  if (static_cast<const uint64_t*>(block)[1] != 0 || !reads_as_zero(bytes + min_alignment, bytes + end)) return false;
  return end == class_size || last_canary_holds(block, class_size, canary);
}

bool end(WaitingBlock waiting) noexcept {
  return end_waiting(waiting, class_bytes()[unit_index_of(waiting.block())]);
}

void prepare(char* first, State* states, size_t count, unsigned size_class) noexcept {
  const size_t size = class_sizes[size_class];
  for (size_t i = 0; i < count; ++i, first += size) {
    write_last_canary(first, size, canary_of(first));
    states[i].store(state_clear, std::memory_order_relaxed);
  }
}

void retire(char* first, State* states, size_t count, unsigned size_class) noexcept {
  const size_t size = class_sizes[size_class];
  const bool plain = class_byte_of(size_class) - 1u < last_plain_byte;
  for (size_t i = 0; i < count; ++i, first += size) {
    const uint64_t canary = canary_of(first);
    const bool never_used = states[i].load(std::memory_order_relaxed) == state_clear;
    if (never_used ? !last_canary_holds(first, size, canary)
                   : !(plain ? clear_if_untouched(first, class_rows[size_class], size, canary)
                             : is_untouched(first, size, canary))) [[unlikely]]
      report_write_to_free(first);
    states[i].store(state_new, std::memory_order_relaxed);
  }
}

void start() noexcept {
  clear_all = options.zero_on_free;
  if (clear_all) last_plain_byte = 0;
  draw_secrets();
}

}  // namespace sluice::hardened
