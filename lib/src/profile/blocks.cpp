// See blocks.hpp.
#include "profile/blocks.hpp"

namespace sluice::profile {
namespace {

// A unit for blocks of the class, with records for them. Null when there is no memory.
Unit* make_unit(Records& records, unsigned size_class) noexcept {
  bool clean = false;
  const size_t index = region::allocate(1, 1, UnitState::Sampled, &clean);
  if (index == unit_index_none) return nullptr;
  const auto capacity = static_cast<uint16_t>(unit_size / class_sizes[size_class]);
  const RecordNumber first = records.take_run(capacity);
  if (first == no_record) {
    region::give_back(index, 1, clean);
    return nullptr;
  }
  Unit* const unit = region::unit_at(index);
  unit->sampled = {first, no_record, unit_index_none, 0, capacity, static_cast<uint8_t>(size_class)};
  class_bytes()[index] = class_byte_sampled;
  return unit;
}

}  // namespace

RecordNumber record_of(const void* block) noexcept {
  const size_t index = unit_index_of(block);
  const SampledBlocks& unit = region::unit_at(index)->sampled;
  const auto offset = static_cast<size_t>(static_cast<const char*>(block) - region::address_of(index));
  const size_t size = class_sizes[unit.size_class];
  return offset % size == 0 && offset / size < unit.capacity ? unit.first_record + static_cast<uint32_t>(offset / size)
                                                             : no_record;
}

void* Blocks::take(Records& records, unsigned size_class, RecordNumber* record) noexcept {
  Unit* unit = nullptr;
  if (partial_[size_class] != unit_index_none) {
    unit = region::unit_at(partial_[size_class]);
  } else {
    unit = make_unit(records, size_class);
    if (unit == nullptr) return nullptr;
    partial_[size_class] = static_cast<uint32_t>(region::index_of(unit));
    ++units_[size_class];
  }
  SampledBlocks& blocks = unit->sampled;
  if (blocks.free != no_record) {
    *record = blocks.free;
    blocks.free = records.at(*record).next;
  } else {
    *record = blocks.first_record + blocks.carved++;
  }
  records.at(*record).unit = static_cast<uint32_t>(region::index_of(unit));
  if (blocks.free == no_record && blocks.carved == blocks.capacity) partial_[size_class] = blocks.next;
  ++live_[size_class];
  return region::address_of(region::index_of(unit)) + (*record - blocks.first_record) * size_t{class_sizes[size_class]};
}

void Blocks::give_back(Records& records, RecordNumber number) noexcept {
  Record& record = records.at(number);
  SampledBlocks& blocks = region::unit_at(record.unit)->sampled;
  if (blocks.free == no_record && blocks.carved == blocks.capacity) {
    blocks.next = partial_[blocks.size_class];
    partial_[blocks.size_class] = record.unit;
  }
  record.next = blocks.free;
  blocks.free = number;
  --live_[blocks.size_class];
}

}  // namespace sluice::profile
