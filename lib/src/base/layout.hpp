// The layout of the heap: every constant and every struct, with life-cycles and invariants. Read it before anything
// else in lib/src/heap; validate.cpp checks the formulas.
//
// Address space. One range of address space holds everything, cut into units of 64 KiB:
//
//   region_base                                            region_base + range_units * unit_size
//   | class bytes | units …   | PROT_NONE … | not reserved … | descriptors | free bitmaps | remote bitmaps |
//   |  1 a unit   | committed | reserved    |                |  64 a unit  |  512 a unit  |   512 a unit   |
//                             ^ region::limit() (units from region_base)
//
// Units and tables are reserved only as far as the heap reaches, and a little more: reserved address space counts under
// a limit (ulimit -v) and where a program locks its memory. (Where the system does not let the heap choose its place,
// the whole range is reserved at once, and all tables lie between the class bytes and the units.)
//
// What any address is takes one subtraction, one shift, one compare and one byte load:
//   unit = (address - region_base) / unit_size;   unit >= region_range_units: not ours;   class_bytes()[unit]: what.
//
// region_range_units is how far class bytes can be read; from region::limit() up to there they are 0. The class byte of
// a slab's unit is twice its size class: the offset of the class's bin in a thread cache, in words, so that it needs no
// scaling. Units that no slab uses have the bins of other class bytes, which never have room: a free of what lies there
// takes the slow path.
//
// Life of a unit: Unit::state of the first and the last unit of a span. The state of a unit between them says nothing,
// but for slabs, guarded blocks and blocks of no bytes. What a span serves for has a life of its own, drawn beside its
// struct below.
//
//      commit            allocate                            free                        purge (or coalescing)
//   (none) ──▶ FreeClean ────────▶ Slab, Large, Arena, … ────▶ FreeDirty ──▶ Purging ──────────────────▶ FreeClean
//                                                               ├── allocate (reused while its pages are in memory)
//                                     free, of few units ──▶ FreeRecent ── allocate of the same length
//
// In a secure build a Slab, Arena or Frame that is given back becomes Retained, a Large one waits as it is; both serve
// their like, or go back to the region. A Gap and what is Abandoned hold nothing.
//
// The free blocks of a slab are bits, not a list: bitmaps lie out of line, a flush touches no block, and a refill hands
// out blocks in the order of their addresses, so that what is allocated together lies together, however it was freed.
// Threads that do not own the slab set bits in a second bitmap, the remote one, 64 blocks with one instruction if they
// lie side by side.
//
// Invariants of a slab s, under its owner's lock:
//   s.free_count <= s.carved <= s.capacity;  in use are the other carved ones: with the program, in caches, or remote
//   s.free_count == bits in its free bitmap;  no bit at or beyond s.carved;  no block has both its bits set
//   s in partial list  <=>  s.free_count > 0 or s.carved < s.capacity
//   a page is absent  =>  each block that reaches into it is free
//   every unit u of the span: class_bytes()[u] == 2 * s.size_class and (u - u.slab.back) is the first unit
// Invariants of a bin, on its own thread:
//   room == cap - length(head);  a spare list has spare_count blocks;  0 <= cap <= earned
// Invariants of a cache, under its lock, for each class:
//   uses[k].used and uses[k].carved are the blocks in use and carved of its slabs;  kept_kib == sum of uses[k].kept_kib
// Invariants of a chunk, on its owner's thread or under the lock of an owner that has ended:
//   headers follow one another from the first to chunk_end; the window, if it lies here, stands in for one
//   free_bytes() == bytes of the objects that the owner freed and has not popped, and of fillers
//   everything in it is free  <=>  free_bytes() + bytes of the window + objects freed by others == chunk_capacity
// Invariants of the region, under its lock:
//   two free spans that touch differ in being clean or dirty, or one is recent;  dirty_units == sum of the dirty spans
//   and the recent ones
//   class byte of every unit of a free span == 0
//
// A secure build (base/policy.hpp) has a fifth table, the states of blocks, 2 bytes for each block of a slab:
//
//   NEW ──carved──▶ CLEAR ──handed out──▶ LIVE: block size - requested size ──free──▶ FREED
//                                          ▲    (a canary at least)                     │
//                                          └──────────── handed out again ◀─────────────┘
//
// A freed block waits in its thread's cache before it serves again or comes to a bin; slab destroyed: all NEW. A FREED
// block reads as zero, its first 48 bytes, but for the word of a link (all of it with SLUICE_ZERO_ON_FREE); of a CLEAR
// one only the last word, a canary, is as the heap left it. The last unit of every span that small blocks, frames or
// thread caches lie in cannot be touched, as long as there are not too many guards (pages/access.cpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/atomic_field.hpp"
#include "base/mutex.hpp"
#include "base/policy.hpp"
#include "base/size_class.hpp"
#include "os/statistics.hpp"
#include "os/unwind.hpp"

#if defined(__SANITIZE_THREAD__)
#define SLUICE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLUICE_THREAD_SANITIZER 1
#endif
#endif

namespace sluice {

// ThreadSanitizer knows a few stretches of address space only, and sees every access.
#if defined(SLUICE_THREAD_SANITIZER)
inline constexpr bool can_choose_addresses = false;
#else
inline constexpr bool can_choose_addresses = true;
#endif

inline constexpr unsigned unit_shift = 16;
inline constexpr size_t unit_size = size_t{1} << unit_shift;  // bytes
inline constexpr unsigned bin_stride = 2;                     // a bin is two words; class bytes count words
inline constexpr uint8_t class_byte_none = 0;
inline constexpr uint8_t class_byte_large = bin_stride * size_class_count;
inline constexpr uint8_t class_byte_arena = class_byte_large + bin_stride;
inline constexpr uint8_t class_byte_guarded = class_byte_arena + bin_stride;
inline constexpr uint8_t class_byte_sampled = class_byte_guarded + bin_stride;
inline constexpr unsigned bin_count = size_class_count + (profiles_blocks ? 4 : 3);  // one for each class byte value
inline constexpr unsigned slab_min_blocks = 8;
inline constexpr unsigned scattered_capacity = 64;                      // blocks
inline constexpr size_t bitmap_words = unit_size / min_alignment / 64;  // of 64 blocks; for the smallest blocks
inline constexpr unsigned most_nodes = 8;       // of memory that are told apart (pages/nodes.hpp)
inline constexpr unsigned unit_index_none = 0;  // unit 0 holds class bytes, so it never stands for anything else

static_assert(bin_stride * (bin_count - 1) <= UINT8_MAX);

constexpr uint8_t class_byte_of(unsigned size_class) noexcept {
  return static_cast<uint8_t>(bin_stride * size_class);
}

// What a unit serves for; before the colon, the member of its union that says more.
enum class UnitState : uint8_t {
  None,        // never committed, inside a span, or free when a fork's child gave its free spans up
  FreeDirty,   // free: ends of a free span whose pages may be in memory
  FreeRecent,  // free: likewise, just freed: not joined with its neighbours; serves the next request of its length
  FreeClean,   // free: ends of a free span that reads as zero
  Slab,        // slab: every unit of a slab
  Large,       // large: first unit of the span of a large block
  LargeTail,   // last unit of such a span of two units or more
  Meta,        // holds thread caches and other structures of the heap
  Arena,       // chunk: a chunk of a stack arena
  Frame,       // ends of a span of frame memory
  Guarded,     // guarded: ends of a span with a guarded block, or for one
  Sampled,     // sampled: a unit with blocks that the profile samples
  Purging,     // purging: ends of a span that is being purged
  Zero,        // every unit of a span of blocks of no bytes, in secure builds
  Retained,    // ends of a span that a secure build keeps for its like and that held no large block; its guard stands,
               // all else can be touched. What held a large block stays Large
  Extent,      // ends of what slabs have not yet taken of an extent of huge pages: free (pages/huge_pages.hpp)
  Gap,         // gap: ends of address space that is not the heap's: others use it, or it was given up
  Abandoned,   // ends of a span whose pages the system does not make accessible: never used again
};

// The mapping that a unit lies in: Linux gives pages that were moved one of their own (pages/mappings.hpp).
enum class UnitMapping : uint8_t {
  Usual,      // that of the region
  Displaced,  // its pages were moved here
  Begins,     // likewise, and it is the first unit of such a mapping
  Anew,       // in the child of a fork: one with its neighbours that were mapped anew since, and apart from all others
};

// What the system was told of the pages there (pages/huge_pages.hpp).
enum class PageAdvice : uint8_t {
  None,
  Huge,   // to make them huge
  Small,  // not to, any more
};

struct ThreadCache;
struct Arena;  // arena/arena.hpp
namespace profile {
struct Site;  // profile/sites.hpp
}

// A slab: blocks of one class, owned by one thread cache. `back` and `absent` are of each of its units, the rest is of
// the first. Under the owner's lock, but for what is atomic and what stays as it is for as long as there are blocks:
// back, capacity, size_class.
//
//          carve, refill: blocks go to the cache            every block carved and handed out
//   (new) ──▶ PARTIAL (in the owner's list of its class) ───────────────────────────▶ FULL (in no list)
//                ▲  └─ no block in use, not the last of its class: back to the region     │
//                └──────────────────────── a block comes back by flush ◀──────────────────┘
struct Slab {
  AtomicField<uint64_t> remote_word;      // of 64 blocks or fewer: the remote bitmap
  uint64_t free_word;                     // of 64 blocks or fewer: the free bitmap
  uint32_t next, prev;                    // in the owner's list of partial slabs; before the first is the last
  uint32_t back;                          // how many units before this one the slab begins
  uint16_t free_count, carved, capacity;  // blocks
  uint8_t size_class;
  bool has_absent : 1;     // pages of it were given back (heap/vacant.hpp)
  bool at_end : 1;         // of its list, since each block that it has to give lies on such a page
  bool keeps_vacant : 1;   // the system has refused to take pages of it: the program has locked some
  bool may_be_vacant : 1;  // a page in memory: blocks were freed since there was none, or since it was last dropped
  bool has_pages : 1;      // its span was not clean: most likely every page of it is in memory
  uint16_t absent;         // of this unit, the first or not: which pages, a bit each
};

// The span of a large block. It belongs to who has the block, and in a secure build to the quarantine after that;
// `bytes` may be read by anyone who sees the state Large.
//
//              allocate          free: the class byte becomes that of no blocks
//   (region) ─────────────▶ LIVE ──────────────────────────────────▶ (region)
//                            ▲ └ secure builds ─▶ WAITING ─▶ RETAINED ──▶ (region)
//                            └──────── allocate ────────────────┘      closed, or watched, in both
//
// Other builds have one more place between LIVE and the region: a thread may keep the span (heap/own_spans.hpp).
struct LargeSpan {
  AtomicField<uint64_t> bytes;  // what was asked for; written by the block's user, read by whoever takes a snapshot
  uint32_t touchable_pages;     // secure builds: how many pages can be touched, from the first one on, when it is open
  bool closed : 1;              // secure builds: no page can be touched, since it waits
  bool watched : 1;             // likewise: it waits, and can be touched, but must read as it was left
  bool cleared : 1;             // likewise: it waits, and what can be touched of it when it is open reads as zero
  AtomicField<uint8_t> lead;    // lines of 64 bytes before the block (heap/large.hpp); written and read as `bytes`
  uint32_t record;              // of the profile (profile/records.hpp); 0: the block is not sampled. Its user's
  uint32_t next_own;            // of a span without a block that a thread keeps: the next of its length, and whether it
                                // has waited for long (heap/own_spans.hpp). The thread's
};

namespace arena {
enum class ListKind : uint8_t { None, Retired, Holey, Hot };
}

// A chunk of a thread's stack arena (one unit; arena/object.hpp shows what lies in it). `free_count` is written by the
// owner's thread without the lock; the rest under it.
//
//   (new) ──▶ CURRENT (the thread's window lies in it) ──▶ RETIRED (live objects) ──▶ EMPTY: hot, or back to the region
//                ▲  └─ everything in it is freed: begins anew       │
//                └──────── enough of it is freed: the window moves into a hole
struct Chunk {
  AtomicField<ThreadCache*> owner;   // whose arena it is of; read by any thread that frees an object here
  AtomicField<uint64_t> sweeps;      // how many may still find objects that other threads freed; set by any thread
  uint32_t next, prev;               // in the list that it is in
  AtomicField<uint16_t> free_count;  // freed by the owner, in units of 16 bytes as the next three; while the chunk is
                                     // current, StackWindow::freed counts
  uint16_t wasted;                   // as much of it as the arena's wasted_bytes hold
  uint16_t look_at;                  // the free_count at which somebody should look; see look_at_never
  uint16_t searched;                 // how far the search for a live object has come
  arena::ListKind list;              // that it is in

  static constexpr uint16_t look_at_never = UINT16_MAX;

  size_t free_bytes() const noexcept { return size_t{free_count.load(std::memory_order_relaxed)} * min_alignment; }
  void set_free_bytes(size_t bytes) noexcept {
    free_count.store(static_cast<uint16_t>(bytes / min_alignment), std::memory_order_relaxed);
  }
  size_t wasted_bytes() const noexcept { return size_t{wasted} * min_alignment; }
  size_t look_at_bytes() const noexcept { return size_t{look_at} * min_alignment; }
};

// A free span, in the first of its units. Under the region's lock. One that is allocated leaves the lists.
//
//        free           purge                      the pages are gone          commit
//   ───────────▶ DIRTY ───────▶ (PurgingSpan) ──────────────────────▶ CLEAN ◀────────
//                  ▲                  └─ the system refuses
//                  └──────────────────┘
struct FreeSpan {
  uint64_t freed_at;      // dirty: os::clock_ms()
  uint32_t next, prev;    // in the list of spans of its length; `next` alone in a stack of recent ones
  uint32_t older, newer;  // dirty: in the list by age
  bool bare;              // clean: the pages of its bitmaps went, too
};

// A span that is being purged: in no list, and nobody's but the thread's whose token it is.
struct PurgingSpan {
  uint64_t thread;  // thread_token()
};

// Address space that is not the heap's. Under the region's lock.
struct GapSpan {
  uint32_t next;  // of holes, which were the heap's and may be had again
};

// Which slot a unit belongs to; in each unit of the span. Written under the pool's lock before the class byte becomes
// that of guarded blocks; guarded/slot.hpp draws the life of a slot, which keeps its span.
struct GuardedSlot {
  uint32_t index;  // of the slot
};

// A unit of blocks that the profile samples, all of one class (profile/blocks.hpp). Under the profile's lock, but for
// what stays as it is: first_record, capacity, size_class.
struct SampledBlocks {
  uint32_t first_record;            // of the first block; those of the others follow it
  uint32_t free;                    // the record of a block that was freed; 0: there is none
  uint32_t next, prev;              // in the list of units that have blocks to give
  uint16_t used, carved, capacity;  // blocks
  uint8_t size_class;
};

// Descriptor of a unit, one cache line: what all units have, and what its state adds to it. A slab or a span is
// described by that of its first unit. A table of descriptors is mapped and reads as zero; nothing is constructed.
//
// A span takes up a life in begin_span() (pages/region_state.hpp), under the region's lock, and then the fields of that
// life are zero. A thread may be late and find the unit in another life than it expects. What it touches then is in the
// head, and holds in every life:
//   - owner, queued, pending_next: who freed the last block but one of a slab may announce it when the slab is gone
//     (slab::announce). It finds no owner, since that is null in every other life, or a new slab's, which is queued in
//     place of the old one. A slab that is destroyed while it stands in a pending stack stays there: the link must
//     outlive it.
//   - next_unused: a thread that takes a retained span off a stack may read the link of one that another was faster to
//     take (quarantine.cpp); its exchange fails then.
//   - state: written under the region's lock, or by who alone has the span; read under either, and without a lock by
//     who only wants to know whether an address lies where nothing ever changes (Zero), and for reports. Relaxed: who
//     reads it under the region's lock alone asks whether the span is free, and only the region's lock changes that;
//     who asks for more holds the locks of all who could be changing it.
struct alignas(64) Unit {
  AtomicField<ThreadCache*> owner;     // slab: written under the owner's lock, read by anyone; else null
  AtomicField<uint32_t> pending_next;  // slab: next in the owner's pending stack
  AtomicField<uint32_t> next_unused;   // span that nobody uses and that is not free: the next of a lock-free stack
  uint32_t units;                      // of the span (also in the last unit of a free span); under the region's lock,
                                       // but for who has the span
  AtomicField<bool> queued;            // slab: it is in its owner's pending stack
  AtomicField<UnitState> state;
  bool has_guard;                // secure builds: pages of the span cannot be touched
  AtomicField<uint8_t> mapping;  // of each unit, whatever it serves for: a UnitMapping, a PageAdvice times 4, 16 where
                                 // the huge page is whole, and 32 times the memory node of the span that begins here
                                 // (pages/nodes.hpp); written under the region's lock
  union {
    Slab slab;
    LargeSpan large;
    Chunk chunk;
    FreeSpan free;
    PurgingSpan purging;
    GapSpan gap;
    GuardedSlot guarded;
    SampledBlocks sampled;
  };

  UnitState use() const noexcept { return state.load(std::memory_order_relaxed); }
  void set_use(UnitState to) noexcept { state.store(to, std::memory_order_relaxed); }
};
static_assert(sizeof(Unit) == 64);
static_assert(std::is_trivial_v<Unit> && std::is_standard_layout_v<Unit>, "as it is mapped, so it is used");

// The free blocks of one class that a thread holds: a LIFO list, and how many more frees it takes before a flush.
// `cap` is what the bin has earned, or less: then it is full when the program has one block of the class left.
struct Bin {
  void* head;
  int32_t room;
  int32_t cap;
};
static_assert(sizeof(Bin) == bin_stride * sizeof(void*));

// What a thread has not yet added to a total, the highest that was since it last did, and how far it may go. Of `delta`
// another thread has added `told` for it. See heap/counters.cpp.
struct UntoldChange {
  std::atomic<int64_t> delta, high, slack, told;
};

// Exact counts of one thread cache, kept while statistics are on. Written by the owner, summed by anyone (relaxed).
struct ClassCounters {
#define SLUICE_FIGURE_CLASS SLUICE_EXACT_COUNTER
#include "os/statistics.def"
  UntoldChange live;  // blocks
};
struct ArenaCounters {
#define SLUICE_FIGURE_ARENA SLUICE_EXACT_COUNTER
#include "os/statistics.def"
};
struct LargeCounters {
#define SLUICE_FIGURE_LARGE SLUICE_EXACT_COUNTER
#include "os/statistics.def"
};
struct Counters {
  ClassCounters classes[size_class_count];
  ArenaCounters arena;
  LargeCounters large;
  UntoldChange live_bytes, live_large_bytes;
};

// A word of a cache that its thread reads on the fast paths, and that signal handlers or other threads change now and
// then. Plain reads, of one word each: an atomic one costs an instruction, since compilers do not compare it in place.
template <typename T>
class GateWord {
 public:
  operator T() const noexcept {
#if defined(SLUICE_THREAD_SANITIZER)
    return __atomic_load_n(&value_, __ATOMIC_RELAXED);
#else
    return value_;
#endif
  }
  GateWord& operator=(T value) noexcept {
    __atomic_store_n(&value_, value, __ATOMIC_RELAXED);
    return *this;
  }
  void replace(T expected, T value) noexcept {
    __atomic_compare_exchange_n(&value_, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }

 private:
  T value_;
};

// Where the next object of a scope goes: a stretch of the thread's current chunk. Written by its thread; a fork or a
// snapshot may look at any time.
struct StackWindow {
  std::atomic<char*> cursor;  // the next header
  std::atomic<size_t> last;   // bytes from the last header to the cursor; 0: the cursor is at the first header
  std::atomic<size_t> freed;  // bytes freed in the current chunk and not popped, fillers included
  std::atomic<char*> clean;   // the window reads as zero from here on
  std::atomic<bool> plain;    // freed == 0, and nothing of the window is known to read as zero
  char* limit;                // end of the window
  size_t unit;                // the current chunk's; unit_index_none while there is none
  // What the fast paths need. None of them is open while calls are counted, nor while the window is being changed, so
  // that a signal handler in the middle of it takes the slow path. Written by heap/gate.hpp alone.
  GateWord<char*> open_limit;     // `limit`; null also while no scope places any
  GateWord<char*> sampled_end;    // stands in for it while allocations are sampled (heap/sampling.hpp); else null
  std::atomic<size_t> open_unit;  // `unit`; else unit_index_none
  std::atomic<ThreadCache*> open_owner;  // this cache; else null
};

// The states of blocks in a secure build; more than these: live, with so many bytes behind what was asked for.
inline constexpr uint16_t state_new = 0;    // not carved
inline constexpr uint16_t state_freed = 1;  // in a queue, on a stack, in a bin or a slab
inline constexpr uint16_t state_clear = 2;  // likewise, and never handed out: only its last word is as we left it
inline constexpr size_t canary_size = sizeof(uint64_t);
inline constexpr size_t small_limit_when_open = max_direct_size + 1 - (checks_blocks ? canary_size : 0);  // of requests
inline constexpr size_t states_per_unit = checks_blocks ? unit_size / min_alignment : 0;

// A freed block that waits for its ends to be checked, and the state that it had, in one word: a fork that stops the
// thread finds both or neither. Addresses have 52 bits at most.
class WaitingBlock {
 public:
  constexpr WaitingBlock() noexcept = default;
  WaitingBlock(const void* block, uint16_t state) noexcept : word_(reinterpret_cast<uintptr_t>(block) << 12 | state) {}
  // Of a slot that another thread may be writing.
  static WaitingBlock load(const WaitingBlock& slot) noexcept {
    WaitingBlock copy;
    copy.word_ = __atomic_load_n(&slot.word_, __ATOMIC_RELAXED);
    return copy;
  }
  explicit operator bool() const noexcept { return word_ != 0; }
  void* block() const noexcept { return reinterpret_cast<void*>(word_ >> 16 << 4); }
  uint16_t state() const noexcept { return static_cast<uint16_t>(word_); }

 private:
  uintptr_t word_;
};

// Freed blocks of one class on their way back to the program, in a secure build: they wait in a queue of two
// generations, one complete and one that is being filled, and lie on a stack then. So a block serves again after as
// many more frees of its class as a generation has, at least. Larger ones wait together (SecureCache::larger).
struct alignas(bin_stride * sizeof(void*)) Reuse {
  std::atomic<uint32_t> next;  // slot of the queue where the next block goes
  std::atomic<uint32_t> top;   // slot behind the uppermost block of the stack; the one below its lowest is always null
  uint16_t first_queued;       // slots of the queue and of the stack; these are set once
  uint16_t first_ready;
  uint8_t generation_mask;  // blocks of a generation - 1
  uint8_t stack_capacity;

  unsigned generation() const noexcept { return generation_mask + 1u; }
};

// What the fast path needs of a class, so that it branches nowhere by size. Within one unit an offset has 16 bits: a
// block's number is offset * reciprocal >> 32, and what is behind the point is less than one reciprocal for a block's
// first byte alone. Not for classes of longer slabs.
struct alignas(bin_stride * sizeof(void*)) ClassRow {
  uint32_t reciprocal;
  uint16_t size;
  uint8_t granules[2];  // offsets of what is cleared besides the first granule; they may overlap
  int8_t keeps_last;    // all ones if the block's last word is not cleared: it stays a canary
};

constexpr unsigned generation_of(size_t block_size) noexcept {
  unsigned blocks = 16;
  for (size_t size = 128; size < block_size && blocks > 2; size *= 2)
    blocks /= 2;
  return blocks;
}
// Those of larger blocks have no queue of their own: of each class some would wait in each thread.
constexpr size_t longest_in_queue = 8 * 1024;  // bytes
constexpr unsigned queue_slots_of(size_t block_size) noexcept {
  return block_size <= longest_in_queue ? 2 * generation_of(block_size) : 0;
}
// Blocks that a stack takes, whole generations. Larger ones never come from stacks.
constexpr unsigned stack_capacity_of(size_t block_size) noexcept {
  if (block_size > max_direct_size) return 0;
  const size_t most = 9'088 / block_size < 192 ? 9'088 / block_size : 192;
  return static_cast<unsigned>(most / generation_of(block_size) * generation_of(block_size));
}
// Queues begin at a multiple of their generation, which never grows with the class.
constexpr unsigned first_queued_slot(unsigned size_class) noexcept {
  unsigned slots = 0;
  for (unsigned k = 1; k < size_class; ++k)
    slots += queue_slots_of(class_sizes[k]);
  return slots;
}
constexpr unsigned first_ready_slot(unsigned size_class) noexcept {
  unsigned slots = first_queued_slot(size_class_count);
  for (unsigned k = 1; k < size_class; ++k)
    slots += 1 + stack_capacity_of(class_sizes[k]);
  return slots + 1;
}

// What a secure build adds to a thread's cache: blocks to be used again, and those that came to a full bin, which wait
// for their ends to be checked until the processor has fetched them.
struct SecureCache {
  static constexpr unsigned waiting_slots = 32;
  static constexpr unsigned larger_slots = 8;
  Reuse reuse[size_class_count];                    // class 0 has an empty stack: requests for no bytes end there
  ClassRow rows[size_class_count];                  // copies, where an index reaches them as it reaches the bins
  void* slots[first_ready_slot(size_class_count)];  // of all queues, null where no block is, and of all stacks
  uint8_t
      bin_of[max_direct_size / canary_size];  // class byte by (size + 7) / 8, with room for a canary; 0 for no bytes
  WaitingBlock waiting[waiting_slots];
  unsigned next_waiting;       // where the next one goes
  void* larger[larger_slots];  // freed blocks of all classes that have no queue, a ring, null where none is
  unsigned next_larger;        // where the next one goes, and the oldest lies
};
struct NoSecureCache {};

// A walk over the slabs of a cache that have blocks to give, in portions (heap/sparse.hpp).
enum class Walk : uint8_t { None, Counting, Dropping };

// When vacant pages of a cache's slabs go back (heap/sparse.hpp). Under the cache's lock, but for what is atomic. In
// bytes and ms.
struct Vacancy {
  std::atomic<ptrdiff_t> until_look;  // what may come back to the slabs before somebody looks; any thread reads it
  size_t free_bytes;                  // of the free blocks in the slabs
  size_t slab_units;                  // of all slabs…
  size_t tail_bytes;                  // …and what is behind the last block of each
  size_t absent_bytes;                // of their absent pages
  size_t freed_since;                 // freed since the program last asked for a walk…
  size_t left;                        // …and vacant bytes in memory that it left, at most

  Walk walk;
  bool is_asked;          // for, by the program
  uint8_t walked_class;   // where the walk has come to…
  uint32_t next;          // …and the slab that comes next; unit_index_none: the next class's first
  size_t keep;            // vacant bytes that it leaves in memory
  size_t present;         // vacant bytes in memory that it has found and left so far
  uint64_t slabs_walked;  // slabs whose pages were looked at since start, and…
  uint64_t portions;      // …portions of walks

  size_t counted_free;           // free_bytes when the vacant pages were last counted, or less since if they went then
  uint64_t counted_ms;           // when that was
  uint8_t fruitless;             // counts since pages last went, or since most was in use
  size_t missed;                 // what went for nothing: needed again soon, or its slab did. So much more is kept
  uint64_t missed_ms;            // when that was last, or was last forgotten by half
  uint64_t gave_back_ms;         // when pages last went
  uint64_t sparse_ms;            // since when most of the slabs is free, or pages last went; 0: most is in use
  std::atomic<uint64_t> due_ms;  // when to look although nothing more was freed; 0: not. Anyone may read it
};

// Why calls of a thread take the slow paths; none of the bits: they take the fast ones. heap/gate.hpp makes what the
// fast paths look at agree with it.
struct CacheMode {
  enum Bit : uint8_t {
    Counting = 1,  // exact statistics: malloc and free
    Routing = 2,   // a scope is open that places objects in the arena: malloc
    Sampling = 4,  // some of the blocks are guarded or in the profile (heap/sampling.hpp): malloc
    PassingOn = 8  // the layer above passes some requests on to another allocator: malloc
  };

  uint8_t bits;

  constexpr bool has(Bit bit) const noexcept { return (bits & bit) != 0; }
  constexpr CacheMode with(Bit bit, bool on) const noexcept {
    return {static_cast<uint8_t>(on ? bits | bit : bits & ~bit)};
  }
  constexpr bool operator==(const CacheMode&) const noexcept = default;

  // Of a cache whose thread may be writing it.
  static CacheMode load(const CacheMode& mode) noexcept { return {__atomic_load_n(&mode.bits, __ATOMIC_RELAXED)}; }
  static void store(CacheMode& mode, CacheMode value) noexcept {
    __atomic_store_n(&mode.bits, value.bits, __ATOMIC_RELAXED);
  }
};

// A transfer list as a thread left it, and since when nobody else came: 0: somebody just did (heap/transfer.hpp).
struct SeenList {
  uint32_t mark : 24;
  uint32_t alone_since : 8;
};

// What a thread has of one class: the blocks of all its slabs, under the lock, and its part of the budget
// (heap/budget.hpp), which its own thread looks after. Together, since each refill and flush needs all of it.
struct alignas(32) ClassUse {
  AtomicField<uint32_t> used;  // with the program, in caches, or remote; its thread reads it without the lock
  uint32_t carved;
  uint32_t kept_kib;         // counted as kept that the program does not use
  uint32_t used_at;          // ThreadCache::slow_calls when the class was last seen in use…
  uint16_t evicted_at;       // …and when it had to give back what it kept, the lower half; 0: it is back
  uint16_t carved_then;      // blocks, or more than a slab has
  uint16_t lent_kib;         // by how much the budget shrank then, since the class looked idle
  uint16_t last_free_at;     // slow_calls, the lower half, when the program's last block was last seen to come back…
  uint16_t earned;           // how many blocks its bin may hold: more when it was flushed often
  uint8_t last_frees : 4;    // …and how often it came, each time soon after the time before
  bool refilled_itself : 1;  // its bin was last refilled from the class's second list
  bool keeps_all : 1;        // all that is carved counts as kept, as of its last refill or flush
  bool from_others : 1;      // the blocks that came back last to its full bin were other threads' (if large: shared)
  bool overflowed : 1;       // blocks were set aside since its bin was last refilled from the slabs
  // How many of the next blocks that come to the full bin may be set aside without a look; only while the program has
  // more than these and those that are set aside.
  uint8_t unseen : 4;
  uint8_t streak : 4;  // how many blocks lay in the unit where the last one lay; of blocks that may be shared instead
                       // how often the transfer list was found as its thread had left it (heap/transfer.hpp)
  union {
    uint32_t overflow_unit;  // where the last block lay that came to the full bin and was looked at
    SeenList seen_list;      // of blocks that may be shared
  };
};
static_assert(sizeof(ClassUse) == 32);

// Free spans that a thread keeps for itself (heap/own_spans.hpp), each at most so many units long.
inline constexpr size_t longest_own = 16;
struct OwnSpans {
  uint32_t heads[longest_own + 1];  // the first of each length; none of length 0
  AtomicField<uint16_t> units;      // in all
  uint16_t granted;                 // by the region: how many there may be
  int16_t worth;                    // rises with the requests that they or recent spans serve, and falls with others
  uint16_t puts;                    // how many blocks came that could have been kept
  bool busy;                        // its thread is changing them: its signal handlers leave them alone
  uint8_t node;                     // the memory node that the thread last was on, as far as it looked
  uint32_t looked_ms;               // when the thread last looked which ones it needs, the lower half
};
// As NoProfileThread: where freed spans wait in the quarantine nobody keeps any. All threads share it: only read it.
struct NoOwnSpans {
  static inline uint32_t heads[longest_own + 1]{};
  static inline AtomicField<uint16_t> units{0};
  static inline uint16_t granted = 0;
  static inline int16_t worth = 0;
  static inline uint16_t puts = 0;
  static inline bool busy = false;
  static inline uint8_t node = 0;
  static inline uint32_t looked_ms = 0;
};

// What the profile keeps for a thread (heap/sampling.hpp).
struct ProfileThread {
  int64_t until;  // bytes up to the next sampled allocation, which is the one that takes them below 0; less while a
                  // call that a signal handler interrupted has taken some off and not yet given them back
  GateWord<size_t> limit;  // requests below it are counted for the profile alone, and come from the bins then; else 0
  int64_t interval;        // what they were when they were drawn
  uint64_t rate;           // that they were drawn at
  const profile::Site* moved_from;  // while a sampled block is moved: what the new one is a sample of…
  size_t moved_size;                // …and the bytes that are asked for it
  os::StackBounds stack;
  uint32_t number;    // of the thread
  char name[16];      // of the thread, zeroes behind its end…
  uint64_t named_ns;  // …as of then
};
// Never used; it lets code be written for both.
struct NoProfileThread {
  static inline int64_t until = 0, interval = 0;
  static inline GateWord<size_t> limit{};
  static inline uint64_t rate = 0;
  static inline const profile::Site* moved_from = nullptr;
  static inline size_t moved_size = 0;
  static inline os::StackBounds stack{};
  static inline uint32_t number = 0;
  static inline char name[16]{};
  static inline uint64_t named_ns = 0;
};

// Of a count of sampling that does not take part, or is being drawn.
inline constexpr int64_t never_due = INT64_MAX / 2;

// Whether a thread samples (heap/sampling.hpp). Asked is written by any thread, the others by its own.
enum SamplingState : int8_t { NotSampling = 0, IsSampling = 1, AskedToLookAgain = -1 };

// One per thread. The first lines are what malloc and free touch; the rest is for the slow path.
struct alignas(64) ThreadCache {
  Bin bins[bin_count];           // by class byte, in words from the cache's address
  GateWord<size_t> small_limit;  // requests below it take the fast path; 0: the gate is shut, by any thread
  StackWindow window;            // of the stack arena
  CacheMode mode;
  GateWord<int8_t> sampling;                                // SamplingState
  uint8_t bin_of[max_direct_size / min_alignment + 1 + 7];  // class byte by (size + 15) / 16

  // Sampling (heap/sampling.hpp). All 0 while allocations are not sampled, but for `random`; a count that does not take
  // part is never_due.
  int64_t until_guarded;  // allocations up to the next guarded one, itself included; 0: none will be; less while a call
                          // that a signal handler interrupted has taken one off and not yet given it back
  GateWord<size_t> sampled_limit;  // requests below it come from the bins although the gate is shut
  uint64_t random;                 // where intervals and places chosen at random come from; not 0
  [[no_unique_address]] std::conditional_t<profiles_blocks, ProfileThread, NoProfileThread> profile;

  // A second list for each bin, the older half of the cache: what is flushed, and what malloc falls back on.
  void* spare[bin_count];
  int16_t spare_count[bin_count];

  // Blocks of any class that came back to full bins and lie scattered, on their way to their slabs. They are not
  // touched.
  void* scattered[scattered_capacity];
  std::atomic<uint32_t> scattered_count;  // written after the entry: a fork may stop the thread in between

  // While calls are counted every bin's room is 0, so that frees reach the slow path too; the true room is here.
  int16_t gated_room[bin_count];
  bool attached;             // false for the static caches, which no thread owns
  bool is_common;            // nor this one: who holds its lock uses it (heap/transfer.hpp)
  bool ending;               // its thread's destructors have begun to run
  uint8_t first_transfer;    // which transfer list of each class its thread looks at first (heap/transfer.hpp)
  bool from_fork;            // its thread stayed behind in the parent: room may be off by one
  std::atomic<bool> orphan;  // its thread has ended; anyone may take its lock and its slabs

  // Slabs. `lock` guards everything below it, and the free lists and counts of the slabs that this cache owns.
  [[no_unique_address]] std::conditional_t<quarantines_spans, NoOwnSpans, OwnSpans> own_spans;
  alignas(64) OwnerMutex lock;
  std::atomic<uint32_t> pending;        // stack of slabs with remote frees
  std::atomic<uint32_t> pending_units;  // units of the slabs pushed on it since it was last emptied
  uint32_t partial[size_class_count] SLUICE_GUARDED_BY(lock);  // first slab of each class that has blocks to give
  uint32_t slab_count SLUICE_GUARDED_BY(lock);
  ClassUse uses[size_class_count];
  Vacancy vacancy;
  uint32_t slow_calls;       // refills and flushes, on its own thread
  uint32_t swaps_from;       // the last of them in which not only two lists of a class changed places
  uint32_t flushes_seen;     // how often its thread was asked to flush it when it last looked
  uint16_t seen[bin_count];  // what a bin looked like when it was last looked at for blocks that lie idle…
  uint32_t next_seen;        // …and which one is next
  uint32_t budget_kib;       // of what all classes together may keep that the program does not use…
  uint32_t kept_kib;         // …and what they keep: the sum of ClassUse::kept_kib
  uint32_t short_flushes;    // flushes of long lists that the budget does not let become longer…
  uint32_t short_from_ms;    // …and when the last few of them began, the lower half
  uint32_t short_refills;    // of most_flushed since then, from its slabs: what is freed for good needs no longer lists
  uint8_t long_class;        // whose lists are longer than the budget allows; 0: none is…
  bool long_ends;            // …and they go at its thread's next slow call…
  uint32_t long_kib;         // …what they may hold…
  uint32_t long_seen_at;     // …its ClassUse::used_at when it was last looked at…
  uint32_t long_seen_ms;     // …and when that last changed, the lower half…
  uint32_t others_units;     // …and what was needed for others since it was last seen in use.
  uint16_t steps_without;  // how often more no class becomes that though it would be worth it, as one was in the way…
  uint8_t times_in_the_way;  // …so many times
  uint8_t most_flushed;      // the class of which most lists were flushed of late…
  uint8_t flushes_ahead;     // …and how many, but half as many after each of another; up to what makes a difference
  uint64_t spared[(size_class_count + 63) / 64];  // classes whose first slab has kept no more pages than needed, a bit
                                                  // each; not so often for one that was not idle since
  uint64_t spared_until;                          // what was done so again is paid for at this time, in ms
  uint8_t stood_in[size_class_count];             // how often another class stood in for each (heap/thread_cache.hpp)
  uint32_t let_in_from;      // when somebody began to wait for all locks whom it has let in last…
  uint32_t let_in;           // …and how often it has
  uint64_t paid_until;       // what came back too early up to now, as time in sixteenths of a ms; see budget.cpp
  Counters* counters;        // null unless counting
  Arena* arena;              // null until the thread opens a scope or a frame; written once
  ThreadCache* next_cache;   // all caches ever made, newest first; immutable once published
  ThreadCache* next_orphan;  // caches without a thread, under the registry's lock
  // What heap/orphan_index.hpp knows of it, by class: whether it is noted, and which cache was noted before it.
  std::atomic<bool> noted[size_class_count];
  ThreadCache* next_noted[size_class_count];
  [[no_unique_address]] std::conditional_t<checks_blocks || delays_reuse, SecureCache, NoSecureCache> secure_part;
};

}  // namespace sluice
