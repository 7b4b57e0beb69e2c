// The operating system, as far as the allocator needs it. A new platform implements this header in one file and nothing
// else; tests put an implementation in its place whose n-th call fails.
//
// No function here allocates, uses stdio, or goes through a libc function that programs are known to interpose. All
// addresses and sizes are in bytes and multiples of the page size unless said otherwise. errno is undefined afterwards.
// All functions are thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sluice::os {

// How often each kind of call was made. Read with relaxed loads; a count orders nothing.
struct CallCounts {
#define SLUICE_FIGURE_OS(name, ...) std::atomic<uint64_t> name{0};
#include "os/statistics.def"
};
extern constinit CallCounts call_counts;

// The size of a page in bytes: 4 KiB on x86-64; on macOS else 16 KiB, on Linux read at run time (4, 16 or 64 KiB).
size_t page_size() noexcept;

// Sets address space aside that can be neither read nor written and costs no memory. `hint` is where it should lie, or
// nullptr. With `exact` it lies there or the call fails; it never replaces a mapping. Returns nullptr on failure.
void* reserve(void* hint, size_t bytes, bool exact) noexcept;

// As reserve() with `exact`, and says why it failed: something lies there, or the system gives nothing.
enum class Reserved : uint8_t { Yes, Occupied, Refused };
Reserved reserve_at(void* address, size_t bytes) noexcept;

// Gives address space back, a range that reserve() made or a part of one. False when the system refuses; then it stays.
bool release(void* address, size_t bytes) noexcept;

// Makes reserved pages readable and writable; they read as zero. False on failure, and then nothing has changed.
bool commit(void* address, size_t bytes) noexcept;

// Makes reserved pages readable; they read as zero, and cost neither memory nor commit charge. False on failure.
bool make_readable(void* address, size_t bytes) noexcept;

// Makes committed pages such that nobody can touch them; what is in them stays, and commit() makes it readable again.
// False on failure, and then some of them may be as before.
bool protect(void* address, size_t bytes) noexcept;

// Says whether pages belong into a core dump. Pages that do and pages that do not never share a mapping, so that
// protection can change at the border of the two without mappings being split and joined. A refusal does no harm.
void set_dumped(void* address, size_t bytes, bool dumped) noexcept;

// Drops the contents of committed pages: memory goes back to the system at once, and the pages read as zero when next
// touched. False on failure, and then the contents are unspecified: some pages may have been dropped. What a program
// has locked together with all of its memory (mlockall) stays: false. A range that it locked alone is unlocked and
// dropped.
bool purge(void* address, size_t bytes) noexcept;

// As purge(). *present: so many of the bytes were in memory at most, as far as the time tells that it took.
bool purge(void* address, size_t bytes, size_t* present) noexcept;

// As purge(), but the mapping stays as it is: false also where the system refuses that for locked pages or altogether.
// For tables of the heap: the bytes do not count as given back.
bool drop(void* address, size_t bytes) noexcept;

// Lets the system take pages whose contents nobody needs when it wants them; until then they may keep these. Small
// pages are made of a huge page of which this is a part. False when the system refuses, as purge().
bool drop_lazily(void* address, size_t bytes) noexcept;

// Whether the program has locked all of its memory. One system call.
bool is_memory_locked() noexcept;

// Whether the page at `page` is locked: then it was put in memory when it became accessible. What is in a page that is
// not locked is dropped. A sandbox that allows purge() allows this: it is the same system call.
bool is_locked(void* page) noexcept;

// Effects: remembers how much memory and swap there is, for can_be_promised(). Called once, at start: a sandbox may
// forbid the system call later.
void note_memory_size() noexcept;

// Whether the system lets a program have so many bytes at once. It refuses what is more than there is in memory and
// swap, unless it is told to overcommit without bounds. No system call for what is not more than there was at start,
// else two.
bool can_be_promised(size_t bytes) noexcept;

// As purge(), and replaces the mapping, so that pages that were moved here merge with their neighbours again. On
// failure some or all of them may have no mapping any more: the system takes the old one away first, and then may find
// that there is no memory for another.
bool renew(void* address, size_t bytes) noexcept;

// As renew(), for pages that purge() has emptied: what the program asked of them (madvise, mprotect) is forgotten.
// Where new memory is locked (mlockall with MCL_FUTURE), this is unlocked and dropped, and is_memory_locked() says so
// from then on: the caller asks that before.
bool renew_purged(void* address, size_t bytes) noexcept;

// Whether move_pages() is there at all. macOS can share pages and copy them, but leaves the old ones as they were.
#if defined(__APPLE__)
inline constexpr bool can_move_pages = false;
#else
inline constexpr bool can_move_pages = true;
#endif

// Moves the pages at `from` over the committed pages at `to` without copying; `from` stays committed and reads as zero.
// False when the system cannot. Some of the pages may have been moved then, in order, and behind them `to` may have
// lost its mapping: Linux 6.17 and later move a range of several mappings one by one.
bool move_pages(void* from, void* to, size_t bytes) noexcept;

// Asks for huge pages in a reserved or committed range, or not to make them there any more. A refusal does no harm.
#if defined(__APPLE__)
inline constexpr bool can_advise_huge_pages = false;
#else
inline constexpr bool can_advise_huge_pages = true;
#endif
bool advise_huge_pages(void* address, size_t bytes) noexcept;
bool advise_small_pages(void* address, size_t bytes) noexcept;

// Effects: writes 0 to the byte. Returns: how many nanoseconds that took.
uint64_t touch(void* byte) noexcept;

// Whether all of the pages are mapped: reading them is no fault, if they may be read.
bool is_mapped(const void* address, size_t bytes) noexcept;

// Whether the system tells which pages are in memory: a sandbox may say that all are (gVisor).
bool tells_resident() noexcept;

// How many bytes of a range are in memory now; 0 when the system does not tell. Where a part of `piece` bytes is not
// mapped as a whole, it does not count. Calls found, unless it is null, for each run of pages in memory, by their place
// in the range.
using FoundResident = void (*)(void* context, size_t offset, size_t bytes) noexcept;
size_t resident_bytes(const void* address, size_t bytes, size_t piece, FoundResident found = nullptr,
                      void* context = nullptr) noexcept;

// The most address space that this process may map, in bytes; SIZE_MAX when there is no limit.
size_t address_space_limit() noexcept;

// Some bits that differ from process to process and from call to call; not for cryptography. Whoever sees them learns
// nothing of what the kernel gave the process at its start, which seeds the program's stack canary too, and the other
// way round. Makes no system call.
uint64_t random_bits() noexcept;

// Bits that nobody outside the process can guess, from the system's generator. Where that cannot be asked, *weak is
// set, and they come from what the kernel gave at the start, clocks and addresses.
uint64_t secret_bits(bool* weak) noexcept;

// A monotonic clock in milliseconds, a few nanoseconds to read; it moves with the kernel's tick (1 to 10 ms). It begins
// with a year, so that 0 is long ago, also where the system's own begins with the process (gVisor, time namespaces). 0
// for ever when there is none.
uint64_t clock_ms() noexcept;
inline constexpr uint64_t clock_begins_ms = uint64_t{365} * 24 * 60 * 60 * 1000;

// Which memory node (NUMA) the processor belongs to that runs this thread now; some nanoseconds, and no system call. 0
// where the system does not tell that so. Nodes are not counted from 0 without gaps.
uint32_t memory_node() noexcept;

// True when the program runs with more rights than its caller (setuid, file capabilities): options are then ignored.
bool is_privileged() noexcept;

// The environment, as a null-terminated array; nullptr while libc has not set it up yet.
char** environment() noexcept;

// Sleeps while `word` holds `expected`, for a hundredth of a second at most; may return early. wake_one() wakes one
// sleeper.
void wait(std::atomic<uintptr_t>& word, uintptr_t expected) noexcept;
void wake_one(std::atomic<uintptr_t>& word) noexcept;

// As wait(), for a tenth of a millisecond at most.
void wait_briefly(std::atomic<uintptr_t>& word, uintptr_t expected) noexcept;

// Lets another thread run.
void yield() noexcept;

// Where the data segment ends now, which libc's malloc grows; 0 when the system has no such thing.
uintptr_t data_segment_end() noexcept;

// Calls `on_exit(value)` at the end of each thread that called arm_thread_exit(value) with a value that is not null.
// False when the system has no room for one more such callback.
bool register_thread_exit(void (*on_exit)(void*)) noexcept;
bool arm_thread_exit(void* value) noexcept;

// Calls the three around each fork(): before it, and after it in the parent and in the child. Each may be null.
void register_fork_handlers(void (*prepare)(), void (*parent)(), void (*child)()) noexcept;

}  // namespace sluice::os
