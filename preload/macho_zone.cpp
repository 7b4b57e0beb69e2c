// See macho_zone.hpp.
#include "macho_zone.hpp"

#include <unistd.h>

#include <atomic>

#include "macho_front.hpp"
#include "os/macos_calls.hpp"
#include "os/memory.hpp"
#include "stats/report.hpp"
#include "stats/snapshot.hpp"

namespace sluice::zone {
namespace {

using Zone = malloc_zone_t;

// The system calls these with blocks of any zone where it takes this one for the owner: what is not ours is handed on
// by the front.

size_t size_in_zone(Zone*, const void* block) noexcept {
  return size_of(block);
}

void* allocate(Zone*, size_t size) noexcept {
  return macho::allocate(size);
}

void* allocate_zeroed(Zone*, size_t count, size_t size) noexcept {
  return macho::allocate_zeroed(count, size);
}

void* allocate_pages(Zone*, size_t size) noexcept {
  return macho::allocate_aligned(os::page_size(), size);
}

void* allocate_aligned(Zone*, size_t alignment, size_t size) noexcept {
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return nullptr;
  return macho::allocate_aligned(alignment, size);
}

void free(Zone*, void* block) noexcept {
  front::free(block);
}

// The size is what libmalloc has just been told by size_in_zone().
void free_sized(Zone*, void* block, size_t) noexcept {
  front::free(block);
}

void* reallocate(Zone*, void* block, size_t size) noexcept {
  return macho::reallocate(block, size);
}

void destroy(Zone*) noexcept {}

unsigned allocate_batch(Zone*, size_t size, void** blocks, unsigned count) noexcept {
  unsigned done = 0;
  while (done < count && (blocks[done] = macho::allocate(size)) != nullptr)
    ++done;
  return done;
}

void free_batch(Zone*, void** blocks, unsigned count) noexcept {
  for (unsigned i = 0; i < count; ++i) {
    front::free(blocks[i]);
    blocks[i] = nullptr;
  }
}

size_t relieve_pressure(Zone*, size_t) noexcept {
  const auto purged = [] { return os::call_counts.purged_bytes.load(std::memory_order_relaxed); };
  const uint64_t before = purged();
  return front::trim(0) ? purged() - before : 0;
}

boolean_t claims(Zone*, void* address) noexcept {
  return covers(address);
}

// The type of a block is nothing that this heap goes by.
using TypeId = unsigned long long;  // malloc_type_id_t, which older headers lack
[[maybe_unused]] void* allocate_typed(Zone*, size_t size, TypeId) noexcept {
  return macho::allocate(size);
}
[[maybe_unused]] void* allocate_zeroed_typed(Zone*, size_t count, size_t size, TypeId) noexcept {
  return macho::allocate_zeroed(count, size);
}
[[maybe_unused]] void* reallocate_typed(Zone*, void* block, size_t size, TypeId) noexcept {
  return macho::reallocate(block, size);
}
[[maybe_unused]] void* allocate_aligned_typed(Zone*, size_t alignment, size_t size, TypeId) noexcept {
  return allocate_aligned(nullptr, alignment, size);
}

size_t good_size_of(Zone*, size_t size) noexcept {
  return good_size(size);
}

boolean_t check(Zone*) noexcept {
  return heap::validate().outcome != heap::Validation::Wrong;
}

void print(Zone*, boolean_t) noexcept {
  (void)stats::print_report(STDERR_FILENO, false);
}

void log(Zone*, void*) noexcept {}

// How often the zone is locked: who has locked it may go on using it, so that the heap's locks do not tell.
constinit std::atomic<int> locked{0};

void lock(Zone*) noexcept {
  os::run_before_fork();
  locked.fetch_add(1, std::memory_order_relaxed);
}
void unlock(Zone*) noexcept {
  locked.fetch_sub(1, std::memory_order_relaxed);
  os::run_after_fork();
}
void renew_lock(Zone*) noexcept {
  locked.store(0, std::memory_order_relaxed);
  os::run_in_child();
}

boolean_t is_locked(Zone*) noexcept {
  if (locked.load(std::memory_order_relaxed) != 0 || !cache::try_lock_all()) return true;
  cache::unlock_tried();
  return false;
}

malloc_statistics_t figures() noexcept {
  stats::Snapshot snapshot;
  stats::take_figures(&snapshot);
  malloc_statistics_t result{};
  uint64_t blocks = snapshot.large.live_spans;
  for (const stats::ClassFigures& each : snapshot.classes)
    blocks += each.live_blocks;
  result.blocks_in_use = static_cast<unsigned>(blocks);
  result.size_in_use = snapshot.live_bytes;
  result.max_size_in_use = snapshot.counting ? snapshot.peak_live_bytes : snapshot.live_bytes;
  result.size_allocated = snapshot.mapped_bytes;
  return result;
}

void tell_statistics(Zone*, malloc_statistics_t* statistics) noexcept {
  *statistics = figures();
}

// Of another process nothing is told: its heap can be read where its variables lie, which only its own copy of this
// library knows.
void print_task(task_t task, unsigned, vm_address_t, memory_reader_t, print_task_printer_t) noexcept {
  if (task == mach_task_self()) print(nullptr, false);
}
void tell_task_statistics(task_t task, vm_address_t, memory_reader_t, malloc_statistics_t* statistics) noexcept {
  *statistics = task == mach_task_self() ? figures() : malloc_statistics_t{};
}

// Older headers end these structures earlier; libmalloc goes by the version. What is not set is null.

constinit malloc_introspection_t introspection = [] {
  malloc_introspection_t result{};
  result.enumerator = enumerate;
  result.good_size = good_size_of;
  result.check = check;
  result.print = print;
  result.log = log;
  result.force_lock = lock;
  result.force_unlock = unlock;
  result.statistics = tell_statistics;
  result.zone_locked = is_locked;
  result.reinit_lock = renew_lock;
  result.print_task = print_task;
  result.task_statistics = tell_task_statistics;
  return result;
}();

// Not set: try_free_default, malloc_with_options and malloc_type_malloc_with_options. Headers before macOS 26 say that
// they are for the zones of libmalloc alone, later ones that the latter two are optional.
template <typename AnyZone, typename AnyIntrospection>
consteval AnyZone all_functions(AnyIntrospection* introspect) {
  AnyZone result{};
  result.size = size_in_zone;
  result.malloc = allocate;
  result.calloc = allocate_zeroed;
  result.valloc = allocate_pages;
  result.free = free;
  result.realloc = reallocate;
  result.destroy = destroy;
  result.zone_name = "sluice";
  result.batch_malloc = allocate_batch;
  result.batch_free = free_batch;
  result.introspect = introspect;
  result.memalign = allocate_aligned;
  result.free_definite_size = free_sized;
  result.pressure_relief = relieve_pressure;
  result.claimed_address = claims;
  result.version = 13;
  if constexpr (requires { introspect->zone_type; }) result.version = 14;
  if constexpr (requires { result.malloc_type_malloc; }) {
    result.version = 16;
    result.malloc_type_malloc = allocate_typed;
    result.malloc_type_calloc = allocate_zeroed_typed;
    result.malloc_type_realloc = reallocate_typed;
    result.malloc_type_memalign = allocate_aligned_typed;
  }
  return result;
}
constexpr malloc_zone_t functions = all_functions<malloc_zone_t>(&introspection);

// In whole pages of its own, since malloc_set_zone_name() makes them read-only; and more of them than it needs: in the
// child of a fork, older versions of libmalloc take the default zone for their own and write to what lies behind it.
struct alignas(16384) ZoneInPages {
  malloc_zone_t zone;
  char room[65536 - sizeof(malloc_zone_t)];
};
constinit ZoneInPages in_pages{};
malloc_zone_t& zone = in_pages.zone;

// The first of all zones, which serves requests that name none. malloc_default_zone() returns one that stands in for
// it.
malloc_zone_t* first_zone() noexcept {
  vm_address_t* zones = nullptr;
  unsigned count = 0;
  if (malloc_get_all_zones(TASK_NULL, nullptr, &zones, &count) != KERN_SUCCESS || count == 0) return nullptr;
  return reinterpret_cast<malloc_zone_t*>(zones[0]);
}

void move_to_end(malloc_zone_t* which) noexcept {
  malloc_zone_unregister(which);
  malloc_zone_register(which);
}

constinit bool is_installed = false;

// The zone that a block of others belongs to; null when there is none that can be called.
malloc_zone_t* owner_of(const void* block) noexcept {
  if (covers(block)) return nullptr;  // free memory of this heap: asking on would come back here
  malloc_zone_t* const owner = malloc_zone_from_ptr(block);
  // What stands in for the first zone would come back here.
  return owner == &zone || (is_installed && owner == malloc_default_zone()) ? nullptr : owner;
}

}  // namespace

void install() noexcept {
  constexpr unsigned most_rounds = 64;  // zones that come before this one
  zone = functions;
  // Purgeable memory has a zone that must not come before the one that it takes its small blocks from; it is made now,
  // since it would move forward otherwise.
  malloc_zone_t* const purgeable = malloc_default_purgeable_zone();
  malloc_zone_register(&zone);
  // What is unregistered is replaced by the last zone of all.
  for (unsigned round = 0; round < most_rounds; ++round) {
    malloc_zone_t* const first = first_zone();
    if (first == nullptr || first == &zone) break;
    move_to_end(first);
    if (purgeable != nullptr && purgeable != first) move_to_end(purgeable);
  }
  is_installed = first_zone() == &zone;
}

bool covers(const void* address) noexcept {
  const size_t unit = unit_index_of(address);
  return unit < region_range_units && class_bytes()[unit] != class_byte_none;
}

bool free_of_others(void* block) noexcept {
  malloc_zone_t* const owner = owner_of(block);
  if (owner == nullptr) return false;
  malloc_zone_free(owner, block);
  return true;
}

bool usable_size_of_others(const void* block, size_t* size) noexcept {
  malloc_zone_t* const owner = owner_of(block);
  if (owner == nullptr) return false;
  *size = owner->size(owner, block);
  return *size != 0;
}

size_t good_size(size_t size) noexcept {
  constexpr size_t own = checks_blocks ? canary_size : 0;  // of a block, behind what was asked for
  if (size <= max_small_size - own) return class_sizes[size_class_of(size + own)] - own;
  const size_t last_of_page = os::page_size() - 1;
  return size <= SIZE_MAX - last_of_page - own ? ((size + own + last_of_page) & ~last_of_page) - own : size;
}

}  // namespace sluice::zone
