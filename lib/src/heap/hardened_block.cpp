// See hardened_block.hpp. Compiled into libsluice-secure.so alone.
#include "heap/hardened_block.hpp"

namespace sluice::hardened {

constinit bool clear_all = false;
constinit unsigned last_plain_byte = class_byte_of(last_of_one_unit);

Place place_in_long_slab(const void* address, unsigned size_class) noexcept {
  size_t index = unit_index_of(address);
  index -= region::unit_at(index)->back;
  const auto offset = static_cast<size_t>(static_cast<const char*>(address) - region::address_of(index));
  const uint64_t quotient = offset * slab::reciprocals[size_class];
  return {region::block_states_at(index) + (quotient >> slab::reciprocal_shift), class_sizes[size_class],
          (quotient & slab::reciprocal_fraction) < slab::reciprocals[size_class]};
}

void clear_rest(char* block, size_t class_size) noexcept {
  if (class_size > cleared_size) __builtin_memset(block + cleared_size, 0, class_size - cleared_size);
}

namespace {

bool reads_as_zero(const char* from, const char* to) noexcept {
  for (; from != to; from += sizeof(Granule))
    if (const Granule words = granule_at(from, 0); (words[0] | words[1]) != 0) return false;
  return true;
}

}  // namespace

bool is_untouched(const void* block, size_t class_size, uint64_t canary) noexcept {
  const auto* const bytes = static_cast<const char*>(block);
  const size_t end = clear_all ? class_size : lesser(class_size, cleared_size);
  if (static_cast<const uint64_t*>(block)[1] != 0 || !reads_as_zero(bytes + min_alignment, bytes + end)) return false;
  return end == class_size || last_canary_holds(block, class_size, canary);
}

}  // namespace sluice::hardened
