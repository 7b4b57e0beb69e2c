// Sampled blocks of up to 64 KiB. Each lies in a unit whose blocks are all sampled, and all of one class. Open it to
// see where a sampled block lies, and how free knows it.
//
// The class byte of such a unit names a bin that never has room, as that of guarded blocks does. So free and realloc
// come to their slow paths with a sampled block, and with no other one: their fast paths do not change. The block's
// place in the unit gives its record.
//
//   class byte: class_byte_sampled          records first_record … first_record + capacity - 1
//   | block 0 | block 1 | …        |        | record of block 0 | record of block 1 | …
//
// A unit whose blocks are all free goes back to the region, unless it is the only one of its class that has blocks to
// give; its records wait for the next unit of the class. All under the profile's lock, but for record_of and class_of.
#pragma once

#include "base/layout.hpp"
#include "pages/region.hpp"
#include "profile/records.hpp"

namespace sluice::profile {

// Whether an address lies in a unit of sampled blocks.
inline bool covers(const void* address) noexcept {
  const size_t unit = unit_index_of(address);
  return unit < region_range_units && class_bytes()[unit] == class_byte_sampled;
}

// Requires: covers(block).
inline unsigned class_of(const void* block) noexcept {
  return region::unit_at(unit_index_of(block))->sampled.size_class;
}

// The record of a block; no_record where no block begins. Requires: covers(block).
RecordNumber record_of(const void* block) noexcept;

class Blocks {
 public:
  // Effects: a block of the class, and the number of its record. Null when there is no memory, or no record.
  void* take(Records& records, unsigned size_class, RecordNumber* record) noexcept;

  // Effects: a block ends. Requires: it belongs to a unit.
  void give_back(Records& records, RecordNumber number) noexcept;

  // Blocks of a class that are in use, and units for them.
  size_t live(unsigned size_class) const noexcept { return live_[size_class]; }
  size_t units(unsigned size_class) const noexcept { return units_[size_class]; }

 private:
  Unit* make_unit(Records& records, unsigned size_class) noexcept;
  void destroy(Records& records, size_t index) noexcept;
  void add_partial(uint32_t index) noexcept;
  void remove_partial(const SampledBlocks& unit) noexcept;

  uint32_t partial_[size_class_count]{};          // first unit of a list of those that have blocks to give
  RecordNumber unused_runs_[size_class_count]{};  // the first record of each; linked
  size_t live_[size_class_count]{};
  size_t units_[size_class_count]{};
};

}  // namespace sluice::profile
