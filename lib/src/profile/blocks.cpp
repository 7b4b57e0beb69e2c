// See blocks.hpp.
#include "profile/blocks.hpp"

namespace sluice::profile {
RecordNumber record_of(const void* block) noexcept {
  const size_t index = unit_index_of(block);
  const SampledBlocks& unit = region::unit_at(index)->sampled;
  const auto offset = static_cast<size_t>(static_cast<const char*>(block) - region::address_of(index));
  const size_t size = class_sizes[unit.size_class];
  return offset % size == 0 && offset / size < unit.capacity ? unit.first_record + static_cast<uint32_t>(offset / size)
                                                             : no_record;
}

void Blocks::add_partial(uint32_t index) noexcept {
  SampledBlocks& unit = region::unit_at(index)->sampled;
  uint32_t& first = partial_[unit.size_class];
  unit.prev = unit_index_none;
  unit.next = first;
  if (first != unit_index_none) region::unit_at(first)->sampled.prev = index;
  first = index;
}

void Blocks::remove_partial(const SampledBlocks& unit) noexcept {
  if (unit.prev != unit_index_none)
    region::unit_at(unit.prev)->sampled.next = unit.next;
  else
    partial_[unit.size_class] = unit.next;
  if (unit.next != unit_index_none) region::unit_at(unit.next)->sampled.prev = unit.prev;
}

// A unit for blocks of the class, with records for them. Null when there is no memory.
Unit* Blocks::make_unit(Records& records, unsigned size_class) noexcept {
  const auto capacity = static_cast<uint16_t>(unit_size / class_sizes[size_class]);
  RecordNumber first = unused_runs_[size_class];
  if (first != no_record)
    unused_runs_[size_class] = records.at(first).next;
  else
    first = records.take_run(capacity);
  if (first == no_record) return nullptr;
  bool clean = false;
  const size_t index = region::allocate(1, 1, UnitState::Sampled, &clean);
  if (index == unit_index_none) {
    records.at(first).next = unused_runs_[size_class];
    unused_runs_[size_class] = first;
    return nullptr;
  }
  Unit* const unit = region::unit_at(index);
  unit->sampled = {};
  unit->sampled.first_record = first;
  unit->sampled.capacity = capacity;
  unit->sampled.size_class = static_cast<uint8_t>(size_class);
  class_bytes()[index] = class_byte_sampled;
  add_partial(static_cast<uint32_t>(index));
  ++units_[size_class];
  return unit;
}

void Blocks::destroy(Records& records, size_t index) noexcept {
  const SampledBlocks unit = region::unit_at(index)->sampled;
  remove_partial(unit);
  records.at(unit.first_record).next = unused_runs_[unit.size_class];
  unused_runs_[unit.size_class] = unit.first_record;
  --units_[unit.size_class];
  class_bytes()[index] = class_byte_none;
  region::give_back(index, 1, false);
}

void* Blocks::take(Records& records, unsigned size_class, RecordNumber* record) noexcept {
  const uint32_t first = partial_[size_class];
  Unit* const unit = first != unit_index_none ? region::unit_at(first) : make_unit(records, size_class);
  if (unit == nullptr) return nullptr;
  SampledBlocks& blocks = unit->sampled;
  if (blocks.free != no_record) {
    *record = blocks.free;
    blocks.free = records.at(*record).next;
  } else {
    *record = blocks.first_record + blocks.carved++;
  }
  const size_t index = region::index_of(unit);
  records.at(*record).unit = static_cast<uint32_t>(index);
  if (++blocks.used == blocks.capacity) remove_partial(blocks);
  ++live_[size_class];
  return region::address_of(index) + (*record - blocks.first_record) * size_t{class_sizes[size_class]};
}

void Blocks::give_back(Records& records, RecordNumber number) noexcept {
  Record& record = records.at(number);
  SampledBlocks& blocks = region::unit_at(record.unit)->sampled;
  --live_[blocks.size_class];
  if (blocks.used-- == blocks.capacity) add_partial(record.unit);
  record.next = blocks.free;
  blocks.free = number;
  const bool is_only_one = blocks.prev == unit_index_none && blocks.next == unit_index_none;
  if (blocks.used == 0 && !is_only_one) destroy(records, record.unit);
}

}  // namespace sluice::profile
