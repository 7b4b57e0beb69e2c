// See reachability.hpp.
#include "stats/reachability.hpp"

#include <algorithm>
#include <new>

#include "guarded/slot.hpp"
#include "heap/large.hpp"
#include "os/memory.hpp"
#include "os/objects.hpp"
#include "os/process.hpp"
#include "pages/region.hpp"
#include "profile/blocks.hpp"

namespace sluice::stats {
namespace {

using profile::no_record;
using profile::RecordNumber;
using profile::Records;
using profile::RecordState;

constexpr RecordNumber unmarked = no_record;
constexpr RecordNumber reachable = UINT32_MAX;
constexpr size_t most_ranges = 256;              // of the heap; gaps between them count as roots
constexpr size_t sparse_from = size_t{1} << 20;  // bytes; of larger blocks much may never have been touched

os::MemoryRange range_of(size_t unit, size_t units) noexcept {
  const auto begin = reinterpret_cast<uintptr_t>(region::address_of(unit));
  return {begin, begin + units * unit_size};
}

}  // namespace

struct Reachability::Work {
  os::Roots roots;
  uint64_t until_ms;
  uint32_t steps;
  bool late;
  RecordNumber end;  // of the records
  size_t unit_end;   // of the heap's units
  uintptr_t heap;    // the address of unit 0
  const Records* records;
  RecordNumber* marks;    // of each record: unmarked, reachable, or who leads to it
  RecordNumber* to_scan;  // marked blocks whose words were not looked at
  size_t to_scan_count;
  RecordNumber* leaders;
  uintptr_t* blocks;                     // where the block of each record lies; 0: nowhere
  RecordNumber* spans;                   // of each unit: the record of the large or guarded block that it is a part of
  os::MemoryRange own[most_ranges + 1];  // of the heap, and what this works on
  size_t own_count;
  uint8_t* pages;  // of the heap, two bits each: not asked about, can be read, cannot

  bool mark(RecordNumber number, RecordNumber mark) noexcept {
    if (marks[number] != unmarked) return false;
    marks[number] = mark;
    to_scan[to_scan_count++] = number;
    return true;
  }
};

Reachability::~Reachability() {
  if (work_ == nullptr) return;
  work_->roots.~Roots();
  os::unmap_scratch(work_, bytes_);
}

bool Reachability::is_late() noexcept {
  constexpr uint32_t steps_between_looks = 1024;
  Work& work = *work_;
  if (++work.steps % steps_between_looks == 0) work.late = work.late || os::clock_ms() >= work.until_ms;
  return work.late;
}

// The sampled block that an address points to.
RecordNumber Reachability::block_at(uintptr_t address) const noexcept {
  const Work& work = *work_;
  const size_t unit = (address - work.heap) >> unit_shift;
  if (unit >= work.unit_end) [[likely]]
    return no_record;
  RecordNumber number = work.spans[unit];
  if (number == no_record) {
    if (class_bytes()[unit] != class_byte_sampled) return no_record;
    const SampledBlocks& blocks = region::unit_at(unit)->sampled;
    const size_t index = (address & (unit_size - 1)) / class_sizes[blocks.size_class];
    if (index >= blocks.carved) return no_record;
    number = blocks.first_record + static_cast<RecordNumber>(index);
  }
  if (number >= work.end || work.blocks[number] == 0) return no_record;
  const uintptr_t begin = work.blocks[number];
  const size_t size = work.records->at(number).size;
  const size_t offset = address - begin;
  if (offset < std::max<size_t>(size, 1)) return number;
  // What `new T[0]` gives where T has a destructor: behind a word that holds the number of elements.
  const bool is_behind_count = size == sizeof(uintptr_t) && offset == size;
  return is_behind_count && *reinterpret_cast<const uintptr_t*>(begin) == 0 ? number : no_record;
}

// Calls meet(number) for each block that a word of the range points to.
template <typename Meet>
__attribute__((no_sanitize("address"))) void Reachability::scan(os::MemoryRange range, Meet meet) noexcept {
  const uintptr_t heap = work_->heap;
  const size_t heap_bytes = work_->unit_end << unit_shift;
  constexpr uintptr_t word = sizeof(uintptr_t);
  for (uintptr_t at = (range.begin + word - 1) & ~(word - 1); at + word <= range.end; at += word) {
    const uintptr_t value = *reinterpret_cast<const volatile uintptr_t*>(at);
    if (value - heap >= heap_bytes) [[likely]]
      continue;
    if (const RecordNumber number = block_at(value)) meet(number);
  }
}

// The same of memory of the heap, of which the program may have made pages inaccessible.
template <typename Meet>
void Reachability::scan_readable(os::MemoryRange range, Meet meet) noexcept {
  Work& work = *work_;
  const uintptr_t page = os::page_size();
  for (uintptr_t at = range.begin & ~(page - 1); at < range.end; at += page) {
    const size_t index = (at - work.heap) / page;
    uint8_t& known = work.pages[index / 4];
    const unsigned shift = index % 4 * 2;
    if ((known >> shift & 3) == 0) known |= static_cast<uint8_t>((os::is_readable(at) ? 1 : 2) << shift);
    if ((known >> shift & 3) == 1) scan({std::max(at, range.begin), std::min(at + page, range.end)}, meet);
  }
}

template <typename Meet>
void Reachability::scan_block(RecordNumber number, Meet meet) noexcept {
  const uintptr_t begin = work_->blocks[number];
  const size_t size = work_->records->at(number).size;
  const os::MemoryRange range{begin, begin + size};
  if (size < sparse_from) return scan_readable(range, meet);
  struct Context {
    Reachability& self;
    Meet& meet;
  } context{*this, meet};
  work_->roots.for_each_present(
      range,
      [](void* c, os::MemoryRange part) noexcept {
        const Context& to = *static_cast<Context*>(c);
        if (!to.self.is_late()) to.self.scan_readable(part, to.meet);
      },
      &context);
}

// Marks what a root points to, and all that can be found from there.
void Reachability::mark_from_roots(os::MemoryRange range) noexcept {
  Work& work = *work_;
  const auto meet = [&work](RecordNumber number) noexcept { (void)work.mark(number, reachable); };
  if (is_late()) return;
  if (range.begin - work.heap < work.unit_end << unit_shift)
    scan_readable(range, meet);
  else
    scan(range, meet);
  while (work.to_scan_count != 0 && !is_late())
    scan_block(work.to_scan[--work.to_scan_count], meet);
}

// Marks what a leaked block leads to. Returns: false when it is marked itself.
bool Reachability::lead(RecordNumber leader) noexcept {
  Work& work = *work_;
  if (work.blocks[leader] == 0 || !work.mark(leader, leader)) return false;
  while (work.to_scan_count != 0 && !is_late())
    scan_block(work.to_scan[--work.to_scan_count],
               [&work, leader](RecordNumber number) noexcept { (void)work.mark(number, leader); });
  return true;
}

// What is left is leaked. At first each block leads that no earlier one leads to: so none leads to a later one of them,
// but later ones may lead to earlier ones. From the last one back to the first, those lead that no later one leads to.
void Reachability::mark_leaked() noexcept {
  Work& work = *work_;
  size_t count = 0;
  for (RecordNumber number = no_record + 1; number < work.end && !is_late(); ++number)
    if (lead(number)) work.leaders[count++] = number;
  for (RecordNumber number = no_record + 1; number < work.end; ++number)
    if (work.marks[number] != reachable) work.marks[number] = unmarked;
  while (count != 0 && !is_late())
    (void)lead(work.leaders[--count]);
}

void Reachability::note_guarded() noexcept {
  Work& work = *work_;
  for (size_t i = 0; i != guarded::slot_count(); ++i) {
    const guarded::Slot& slot = guarded::slot_of_index(i);
    if (slot.state.load(std::memory_order_relaxed) != guarded::SlotState::Live) continue;
    const RecordNumber number = slot.record;
    if (number == no_record || number >= work.end) continue;
    work.blocks[number] = reinterpret_cast<uintptr_t>(slot.block);
    for (size_t unit = slot.unit; unit < slot.unit + slot.units && unit < work.unit_end; ++unit)
      work.spans[unit] = number;
  }
}

// Notes the blocks of a span, and that it is the heap's. Returns: how many units it has.
size_t Reachability::note_span(const Records& records, size_t index, os::MemoryRange* own) noexcept {
  Work& work = *work_;
  const Unit& unit = *region::unit_at(index);
  const size_t units = std::min(std::max<size_t>(unit.units, 1), work.unit_end - index);
  if (unit.use() == UnitState::Sampled) {
    const SampledBlocks& blocks = unit.sampled;
    for (RecordNumber i = 0; i != blocks.carved && blocks.first_record + i < work.end; ++i)
      if (records.at(blocks.first_record + i).state.load(std::memory_order_relaxed) == RecordState::Live)
        work.blocks[blocks.first_record + i] = range_of(index, 1).begin + i * size_t{class_sizes[blocks.size_class]};
  } else if (unit.use() == UnitState::Large && large::is_live(unit) && unit.large.record != no_record &&
             unit.large.record < work.end) {
    work.blocks[unit.large.record] = reinterpret_cast<uintptr_t>(large::block_of(unit));
    for (size_t i = 0; i != units; ++i)
      work.spans[index + i] = unit.large.record;
  }
  if (unit.use() == UnitState::Gap) return units;
  const os::MemoryRange range = range_of(index, units);
  if (work.own_count != 0 && (own[work.own_count - 1].end == range.begin || work.own_count == most_ranges))
    own[work.own_count - 1].end = range.end;
  else
    own[work.own_count++] = range;
  return units;
}

void Reachability::note_blocks(const Records& records) noexcept {
  for (size_t index = region::first_span(); index < work_->unit_end;)
    index += note_span(records, index, work_->own);
  note_guarded();
}

Reachability::Outcome Reachability::find(const Records& records, const os::ThreadMark& thread,
                                         uint64_t until_ms) noexcept {
  const size_t end = records.end(), units = region::limit();
  const size_t fixed = (sizeof(Work) + 63) / 64 * 64;
  bytes_ = fixed + end * (sizeof(uintptr_t) + 3 * sizeof(RecordNumber)) + units * sizeof(RecordNumber) +
           units * unit_size / os::page_size() / 4 + 1;
  void* const memory = os::map_scratch(bytes_);
  if (memory == nullptr) return Outcome::NoMemory;
  work_ = new (memory) Work{};
  Work& work = *work_;
  work.until_ms = until_ms;
  work.end = static_cast<RecordNumber>(end);
  work.unit_end = units;
  work.heap = reinterpret_cast<uintptr_t>(region_base);
  work.records = &records;
  work.blocks = reinterpret_cast<uintptr_t*>(static_cast<char*>(memory) + fixed);
  work.marks = reinterpret_cast<RecordNumber*>(work.blocks + end);
  work.to_scan = work.marks + end;
  work.leaders = work.to_scan + end;
  work.spans = work.leaders + end;
  work.pages = reinterpret_cast<uint8_t*>(work.spans + units);
  note_blocks(records);
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  size_t at = work.own_count++;
  for (; at != 0 && work.own[at - 1].begin > begin; --at)
    work.own[at] = work.own[at - 1];
  work.own[at] = {begin, begin + bytes_};
  const auto mark = [](void* self, os::MemoryRange range) noexcept {
    static_cast<Reachability*>(self)->mark_from_roots(range);
  };
  if (!work.roots.for_each(thread, work.own, work.own_count, mark, this)) return Outcome::NoRoots;
  for (size_t index = region::first_span(); index < units;) {
    const Unit& unit = *region::unit_at(index);
    const size_t count = std::min(std::max<size_t>(unit.units, 1), units - index);
    const UnitState use = unit.use();
    const bool is_unknown_block = use == UnitState::Large && work.spans[index] == no_record && large::is_live(unit);
    if (use == UnitState::Slab || use == UnitState::Arena || use == UnitState::Frame || is_unknown_block)
      work.roots.for_each_present(range_of(index, count), mark, this);
    index += count;
  }
  for (size_t i = 0; i != guarded::slot_count(); ++i) {
    const guarded::Slot& slot = guarded::slot_of_index(i);
    const auto block = reinterpret_cast<uintptr_t>(slot.block);
    if (slot.state.load(std::memory_order_relaxed) == guarded::SlotState::Live && slot.record == no_record)
      mark_from_roots({block, block + slot.size});
  }
  mark_leaked();
  return work.late ? Outcome::TooLong : Outcome::Done;
}

RecordNumber Reachability::leader_of(RecordNumber number) const noexcept {
  const Work& work = *work_;
  if (number >= work.end || work.blocks[number] == 0 || work.marks[number] == reachable) return no_record;
  return work.marks[number];
}

}  // namespace sluice::stats
