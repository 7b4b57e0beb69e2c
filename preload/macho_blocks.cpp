// The blocks that the program has, for those who look through a heap (the enumerator of a zone): each block of a slab
// that is neither free there nor waits in a thread's cache, each large block, and each that the profile samples.
// Objects of scopes, frames and guarded blocks are not told. Exact while no other thread allocates: who asks has
// stopped them, or locked the zone. The secure build goes by the states of blocks.
#include <algorithm>

#include "base/layout.hpp"
#include "front.hpp"
#include "guarded/pool.hpp"
#include "heap/large.hpp"
#include "heap/link.hpp"
#include "heap/slab.hpp"
#include "heap/thread_cache.hpp"
#include "macho_zone.hpp"
#include "os/process.hpp"
#include "pages/region.hpp"
#include "profile/profile.hpp"
#if defined(SLUICE_SECURE)
#include "heap/block_state.hpp"
#endif

namespace sluice::zone {
namespace {

#if defined(SLUICE_SECURE)

class LiveBlocks {
 public:
  explicit operator bool() const noexcept { return true; }

  // Of a block of a slab; 0: the program does not have it.
  size_t bytes_of(const Unit& unit, uint32_t, const void* block) const noexcept {
    return hardened_bytes_of(block, class_byte_of(unit.slab.size_class));
  }

  static size_t hardened_bytes_of(const void* block, unsigned byte) noexcept {
    const hardened::Place place = hardened::place_of(block, byte);
    const uint16_t state = place.state_now();
    return place.begins && hardened::is_live(state) ? place.class_size - state : 0;
  }
};

size_t bytes_of_large(const Unit& unit) noexcept {
  return large::requested_bytes(unit) - canary_size;
}

#else

// A bit for each 16 bytes of the heap: a free block begins there that a cache holds.
class Cached {
 public:
  Cached() noexcept : bits_(static_cast<uint64_t*>(os::map_scratch(bytes()))) {}
  ~Cached() {
    if (bits_ != nullptr) os::unmap_scratch(bits_, mapped_);
  }
  Cached(const Cached&) = delete;
  Cached& operator=(const Cached&) = delete;

  explicit operator bool() const noexcept { return bits_ != nullptr; }

  bool has(const void* block) const noexcept { return (word(block) >> bit(block) & 1) != 0; }

  void add_all() noexcept {
    for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache) {
      for (unsigned k = 1; k < size_class_count; ++k) {
        add_list(c->bins[k].head, k);
        add_list(c->spare[k], k);
      }
      const uint32_t scattered = std::min(c->scattered_count.load(std::memory_order_acquire), scattered_capacity);
      for (uint32_t i = 0; i < scattered; ++i)
        if (lies_in_slab(c->scattered[i])) word(c->scattered[i]) |= uint64_t{1} << bit(c->scattered[i]);
    }
  }

 private:
  size_t bytes() noexcept { return mapped_ = limit_ * bitmap_words * sizeof(uint64_t); }

  size_t index(const void* block) const noexcept {
    return static_cast<size_t>(static_cast<const char*>(block) - region_base) / min_alignment;
  }
  uint64_t& word(const void* block) const noexcept { return bits_[index(block) / 64]; }
  size_t bit(const void* block) const noexcept { return index(block) % 64; }

  bool lies_in_slab(const void* block) const noexcept {
    const size_t unit = unit_index_of(block);
    if (unit >= limit_) return false;
    const uint8_t byte = class_bytes()[unit];
    return byte != class_byte_none && byte < class_byte_large;
  }

  // A thread that goes on may have handed a block out: what stands in it then leads to no block that is not one, and
  // not in a circle.
  void add_list(const void* block, unsigned size_class) noexcept {
    while (block != nullptr && lies_in_slab(block) &&
           class_bytes()[unit_index_of(block)] == class_byte_of(size_class) &&
           reinterpret_cast<uintptr_t>(block) % min_alignment == 0 && !has(block)) {
      word(block) |= uint64_t{1} << bit(block);
      block = next_of(const_cast<void*>(block));
    }
  }

  size_t limit_ = region::limit();
  size_t mapped_ = 0;
  uint64_t* bits_;
};

class LiveBlocks {
 public:
  LiveBlocks() noexcept {
    if (cached_) cached_.add_all();
  }

  explicit operator bool() const noexcept { return bool{cached_}; }

  // Of a block of a slab; 0: the program does not have it.
  size_t bytes_of(const Unit& unit, uint32_t number, const void* block) const noexcept {
    const AtomicField<uint64_t>* const remote =
        unit.slab.capacity <= 64 ? &unit.slab.remote_word : region::remote_bitmap_at(region::index_of(&unit));
    const uint64_t freed = slab::free_bits(&unit)[number / 64] | remote[number / 64].load(std::memory_order_acquire);
    return (freed >> number % 64 & 1) == 0 && !cached_.has(block) ? class_sizes[unit.slab.size_class] : 0;
  }

 private:
  Cached cached_;
};

size_t bytes_of_large(const Unit& unit) noexcept {
  return large::usable_size(unit);
}

#endif

// Tells of ranges, many at a time.
class Ranges {
 public:
  Ranges(task_t task, void* context, unsigned kind, vm_range_recorder_t* record) noexcept
      : task_(task), context_(context), kind_(kind), record_(record) {}
  ~Ranges() { tell(); }
  Ranges(const Ranges&) = delete;
  Ranges& operator=(const Ranges&) = delete;

  void add(const void* start, size_t bytes) noexcept {
    ranges_[count_++] = {reinterpret_cast<vm_address_t>(start), bytes};
    if (count_ == most) tell();
  }

 private:
  void tell() noexcept {
    if (count_ != 0) record_(task_, context_, kind_, ranges_, count_);
    count_ = 0;
  }

  static constexpr unsigned most = 128;
  vm_range_t ranges_[most];
  unsigned count_ = 0;
  task_t task_;
  void* context_;
  unsigned kind_;
  vm_range_recorder_t* record_;
};

void add_blocks(const Unit& unit, const LiveBlocks& live, Ranges& ranges) noexcept {
  const ThreadCache* const owner = unit.owner.load(std::memory_order_relaxed);
  if (owner == nullptr || cache::is_lost(owner)) return;
  for (uint32_t i = 0; i < unit.slab.carved; ++i) {
    const void* const block = slab::block_at(&unit, i);
    if (const size_t bytes = live.bytes_of(unit, i, block); bytes != 0) ranges.add(block, bytes);
  }
}

void add_sampled(size_t index, const Unit& unit, Ranges& ranges) noexcept {
  const size_t bytes = class_sizes[unit.sampled.size_class];
  const char* const start = region::address_of(index);
  for (uint32_t i = 0; i < unit.sampled.capacity; ++i)
    if (const char* const block = start + i * bytes; profile::is_live(block)) ranges.add(block, bytes);
}

}  // namespace

kern_return_t enumerate(task_t task, void* context, unsigned kinds, vm_address_t, memory_reader_t,
                        vm_range_recorder_t record) noexcept {
  if (task != TASK_NULL && task != mach_task_self()) return KERN_FAILURE;
  if (region_base == nullptr) return KERN_SUCCESS;
  if ((kinds & MALLOC_PTR_REGION_RANGE_TYPE) != 0) {
    Ranges regions(task, context, MALLOC_PTR_REGION_RANGE_TYPE, record);
    regions.add(region::address_of(region::first_span()), (region::limit() - region::first_span()) * unit_size);
  }
  if ((kinds & MALLOC_PTR_IN_USE_RANGE_TYPE) == 0) return KERN_SUCCESS;
  const LiveBlocks live;
  if (!live) return KERN_RESOURCE_SHORTAGE;
  Ranges blocks(task, context, MALLOC_PTR_IN_USE_RANGE_TYPE, record);
  for (size_t i = region::first_span(); i < region::limit();) {
    const Unit& unit = *region::unit_at(i);
    if (unit.use() == UnitState::Slab) add_blocks(unit, live, blocks);
    if (unit.use() == UnitState::Sampled) add_sampled(i, unit, blocks);
    if (unit.use() == UnitState::Large && large::is_live(unit)) blocks.add(large::block_of(unit), bytes_of_large(unit));
    i += std::max<size_t>(unit.units, 1);
  }
  return KERN_SUCCESS;
}

#if defined(SLUICE_SECURE)
size_t size_of(const void* address) noexcept {
  if (!covers(address)) return 0;
  const unsigned byte = class_bytes()[unit_index_of(address)];
  if (hardened::is_slab(byte)) return LiveBlocks::hardened_bytes_of(address, byte);
  if (guarded::covers(address)) return guarded::usable_size(address);
  const Unit* const span = large::find(address);
  return span != nullptr ? bytes_of_large(*span) : 0;
}
#else
size_t size_of(const void* address) noexcept {
  return covers(address) ? front::usable_size(address) : 0;
}
#endif

}  // namespace sluice::zone
