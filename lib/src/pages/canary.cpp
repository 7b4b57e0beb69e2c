// See canary.hpp. Compiled into libsluice-secure.so alone.
#include "pages/canary.hpp"

#include "base/check.hpp"
#include "pages/region.hpp"

namespace sluice::hardened {

constinit bool clear_all = false;

bool reads_as_zero(const char* from, const char* to) noexcept {
  for (; from + sizeof(Granule) <= to; from += sizeof(Granule))
    if (const Granule words = granule_at(from, 0); (words[0] | words[1]) != 0) return false;
  for (; from < to; ++from)
    if (*from != 0) return false;
  return true;
}

void report(const char* what, const void* address, const char* is, size_t bytes) noexcept {
  Corruption(what)
      .out()
      .text(": 0x")
      .hexadecimal(reinterpret_cast<uintptr_t>(address))
      .text(is)
      .decimal(bytes)
      .text(" bytes");
}

void report_overflow(const void* block, size_t size) noexcept {
  report("overflow", block, " was written to behind its end, a block of ", size);
}

void report_write_to_free(const void* block) noexcept {
  const size_t index = unit_index_of(block);
  if (const Unit* const unit = region::unit_at(index); unit->use() == UnitState::Large)
    return report("write to free memory", block, " was written to while it was free, a large block of ",
                  unit->large.bytes.load(std::memory_order_relaxed) - canary_size);
  report("write to free memory", block, " was written to while it was free, a block of the class of ",
         class_sizes[region::unit_at(index - region::unit_at(index)->slab.back)->slab.size_class]);
}

}  // namespace sluice::hardened
