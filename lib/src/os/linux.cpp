// The operating-system layer for Linux: raw system calls for memory, so that a program's own mmap or madvise hook is
// never entered from inside the allocator. Open it when a system call or its flags are in question.
#include <errno.h>

#include <atomic>
#include <cstdint>

#include <linux/futex.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "os/diagnosis.hpp"
#include "os/keyed_hash.hpp"
#include "os/linux_call.hpp"
#include "os/memory.hpp"
#include "os/seldom_touched.hpp"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace sluice::os {

#if defined(SLUICE_KNOWS_KERNEL)
const bool asks_libc = false;
#else
const bool asks_libc = true;
#endif

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a futex is the lower half of a word");

constinit CallCounts call_counts;

namespace {

constexpr int reserve_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

void count(std::atomic<uint64_t>& counter) noexcept {
  counter.fetch_add(1, std::memory_order_relaxed);
}

bool succeeded(long result) noexcept {
  if (result >= 0 || result < -4095) return true;
  count(call_counts.failed_calls);
  return false;
}

long map(void* address, size_t bytes, int protection, int flags) noexcept {
  count(call_counts.mmap_calls);
  return system_call(SYS_mmap, address, bytes, protection, flags, -1L, 0L);
}

pthread_key_t exit_key;
bool exit_key_made = false;

}  // namespace

// Nothing ever uses it, so that is_locked() may drop its pages.
#if defined(SLUICE_KNOWS_KERNEL)
alignas(4096) SLUICE_SELDOM_TOUCHED constinit char lock_probe[4096]{};
#else
alignas(65536) SLUICE_SELDOM_TOUCHED constinit char lock_probe[65536]{};
#endif
constinit std::atomic<bool> locks_new_memory{false};    // a new mapping was seen to be in memory at once
constinit std::atomic<uint64_t> memory_size{SIZE_MAX};  // see note_memory_size()

size_t page_size() noexcept {
#if defined(SLUICE_KNOWS_KERNEL)
  return 4096;
#else
  static std::atomic<size_t> cached{0};  // every thread computes the same value: relaxed is enough
  size_t size = cached.load(std::memory_order_relaxed);
  if (size == 0) {
    size = getauxval(AT_PAGESZ);
    if (size == 0) size = 4096;
    cached.store(size, std::memory_order_relaxed);
  }
  return size;
#endif
}

void* reserve(void* hint, size_t bytes, bool exact) noexcept {
  if (exact) return reserve_at(hint, bytes) == Reserved::Yes ? hint : nullptr;
  const long result = map(hint, bytes, PROT_NONE, reserve_flags);
  return succeeded(result) ? reinterpret_cast<void*>(result) : nullptr;
}

Reserved reserve_at(void* address, size_t bytes) noexcept {
  const long result = map(address, bytes, PROT_NONE, reserve_flags | MAP_FIXED_NOREPLACE);
  if (!succeeded(result)) return result == -EEXIST ? Reserved::Occupied : Reserved::Refused;
  void* const got = reinterpret_cast<void*>(result);
  if (got == address) return Reserved::Yes;
  (void)release(got, bytes);  // a kernel before 4.17 takes the address for a hint
  return Reserved::Occupied;
}

bool release(void* address, size_t bytes) noexcept {
  count(call_counts.munmap_calls);
  return succeeded(system_call(SYS_munmap, address, bytes));
}

bool commit(void* address, size_t bytes) noexcept {
  count(call_counts.mprotect_calls);
  return succeeded(system_call(SYS_mprotect, address, bytes, PROT_READ | PROT_WRITE));
}

bool make_readable(void* address, size_t bytes) noexcept {
  count(call_counts.mprotect_calls);
  return succeeded(system_call(SYS_mprotect, address, bytes, PROT_READ));
}

bool protect(void* address, size_t bytes) noexcept {
  count(call_counts.mprotect_calls);
  return succeeded(system_call(SYS_mprotect, address, bytes, PROT_NONE));
}

void set_dumped(void* address, size_t bytes, bool dumped) noexcept {
  count(call_counts.madvise_calls);
  (void)succeeded(system_call(SYS_madvise, address, bytes, dumped ? MADV_DODUMP : MADV_DONTDUMP));
}

namespace {

// Puts a new mapping in the place of committed pages. It is made elsewhere and moved there: mmap over the old one takes
// that away first, and may then be refused.
bool replace(void* address, size_t bytes) noexcept {
  const long made = map(nullptr, bytes, PROT_READ | PROT_WRITE, reserve_flags);
  if (!succeeded(made)) return false;
  count(call_counts.mremap_calls);
  if (succeeded(system_call(SYS_mremap, made, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, address))) return true;
  (void)release(reinterpret_cast<void*>(made), bytes);
  return false;
}

}  // namespace

bool purge(void* address, size_t bytes) noexcept {
  count(call_counts.madvise_calls);
  // A sandbox may refuse madvise, and locked pages cannot be dropped this way; a new mapping does the same.
  const long result = system_call(SYS_madvise, address, bytes, MADV_DONTNEED);
  if (!succeeded(result)) {
    const bool locked = result == -EINVAL;
    if ((locked && is_memory_locked()) || !replace(address, bytes)) return false;
    if (locked && is_locked(address)) locks_new_memory.store(true, std::memory_order_relaxed);
  }
  call_counts.purged_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

// What is not in memory goes in no time: a page that is takes 60 to 160 ns, 12 as a part of a huge one, and of many
// that are not each a tenth (Xeon, virtual); the call itself less than a microsecond.
bool purge(void* address, size_t bytes, size_t* present) noexcept {
  constexpr uint64_t least_ns_a_page = 8, absent_pages_a_ns = 8, call_ns = 1000;
  constexpr size_t worth_a_look = size_t{4} << 20;  // bytes: so many take longer than the clock
  *present = bytes;
  if (bytes < worth_a_look) return purge(address, bytes);
  const uint64_t before = clock_ns();
  if (!purge(address, bytes)) return false;
  const uint64_t took = clock_ns() - before;
  const uint64_t all_absent = call_ns + bytes / page_size() / absent_pages_a_ns;
  const uint64_t pages = (took > all_absent ? took - all_absent : 0) / least_ns_a_page + 1;
  if (pages < bytes / page_size()) *present = pages * page_size();
  return true;
}

bool drop(void* address, size_t bytes) noexcept {
  count(call_counts.madvise_calls);
  return succeeded(system_call(SYS_madvise, address, bytes, MADV_DONTNEED));
}

bool drop_lazily(void* address, size_t bytes) noexcept {
  count(call_counts.madvise_calls);
  return succeeded(system_call(SYS_madvise, address, bytes, MADV_FREE));
}

bool is_memory_locked() noexcept {
  return locks_new_memory.load(std::memory_order_relaxed) || is_locked(lock_probe);
}

bool is_locked(void* page) noexcept {
  count(call_counts.madvise_calls);
  return system_call(SYS_madvise, page, page_size(), MADV_DONTNEED) == -EINVAL;
}

void note_memory_size() noexcept {
  struct sysinfo memory = {};
  if (system_call(SYS_sysinfo, &memory) != 0) return;
  memory_size.store((uint64_t{memory.totalram} + memory.totalswap) * memory.mem_unit, std::memory_order_relaxed);
}

bool can_be_promised(size_t bytes) noexcept {
  if (bytes <= memory_size.load(std::memory_order_relaxed)) return true;
  const long probe = map(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (!succeeded(probe)) return false;
  (void)release(reinterpret_cast<void*>(probe), bytes);
  return true;
}

bool renew(void* address, size_t bytes) noexcept {
  return succeeded(map(address, bytes, PROT_READ | PROT_WRITE, reserve_flags | MAP_FIXED));
}

bool renew_purged(void* address, size_t bytes) noexcept {
  if (!renew(address, bytes)) return false;
  if (is_locked(address)) {  // and in memory by now, which is found out once
    locks_new_memory.store(true, std::memory_order_relaxed);
    (void)system_call(SYS_munlock, address, bytes);
    (void)drop(address, bytes);
  }
  return true;
}

namespace {

// qemu-user forgets the range that pages were moved from: it says yes to advice for it, and does nothing, so that what
// is purged there would not read as zero. Every thread finds the same.
enum class Source : uint8_t { Unknown, Known, Forgotten };
constinit std::atomic<Source> source_of_moves{Source::Unknown};

Source look_at_source(void* from) noexcept {
  auto* const byte = static_cast<volatile char*>(from);
  *byte = 1;
  const bool told = system_call(SYS_madvise, from, page_size(), MADV_DONTNEED) == 0;
  const bool kept = *byte != 0;
  if (kept)
    *byte = 0;
  else
    (void)system_call(SYS_madvise, from, page_size(), MADV_DONTNEED);  // what was read is in memory again
  return told && kept ? Source::Forgotten : Source::Known;
}

}  // namespace

bool move_pages(void* from, void* to, size_t bytes) noexcept {
  Source source = source_of_moves.load(std::memory_order_relaxed);
  if (source == Source::Forgotten) return false;
  count(call_counts.mremap_calls);
  if (!succeeded(system_call(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to)))
    return false;
  if (source == Source::Known) return true;
  source = look_at_source(from);
  source_of_moves.store(source, std::memory_order_relaxed);
  if (source == Source::Forgotten) (void)renew(from, bytes);  // as a mapping that it knows
  return true;
}

bool advise_huge_pages(void* address, size_t bytes) noexcept {
  count(call_counts.madvise_calls);
  return succeeded(system_call(SYS_madvise, address, bytes, MADV_HUGEPAGE));
}

bool advise_small_pages(void* address, size_t bytes) noexcept {
  count(call_counts.madvise_calls);
  return succeeded(system_call(SYS_madvise, address, bytes, MADV_NOHUGEPAGE));
}

uint64_t touch(void* byte) noexcept {
  const uint64_t before = clock_ns();
  *static_cast<volatile char*>(byte) = 0;
  return clock_ns() - before;
}

bool is_mapped(const void* address, size_t bytes) noexcept {
  constexpr size_t batch = 512;  // pages asked about at once: slow calls with little stack ask
  unsigned char present[batch];
  const char* at = static_cast<const char*>(address);
  for (size_t left = bytes / page_size(); left != 0;) {
    const size_t pages = left < batch ? left : batch;
    if (system_call(SYS_mincore, at, pages * page_size(), present) != 0) return false;
    at += pages * page_size();
    left -= pages;
  }
  return true;
}

namespace {

// Tells about each run of pages in memory. Returns: how many pages are.
size_t count_runs(const unsigned char* present, size_t pages, size_t offset, FoundResident found,
                  void* context) noexcept {
  size_t resident = 0;
  for (size_t i = 0, end = 0; i < pages; i = end + 1) {
    for (end = i; end < pages && (present[end] & 1) != 0;)
      ++end;
    resident += end - i;
    if (found != nullptr && end != i) found(context, offset + i * page_size(), (end - i) * page_size());
  }
  return resident;
}

}  // namespace

bool tells_resident() noexcept {
  // Where memory is locked all of it is resident; else the question has dropped the probe's page.
  return is_memory_locked() || resident_bytes(lock_probe, page_size(), page_size()) == 0;
}

size_t resident_bytes(const void* address, size_t bytes, size_t piece, FoundResident found, void* context) noexcept {
  const size_t page = page_size();
  constexpr size_t most = 4096;  // pages asked about at once
  const size_t least = piece <= page ? 1 : piece / page < most ? piece / page : most;
  unsigned char present[most] = {};
  const char* at = static_cast<const char*>(address);
  size_t resident = 0;
  size_t batch = most;
  for (size_t left = bytes / page; left != 0;) {
    const size_t pages = left < batch ? left : batch;
    const long result = system_call(SYS_mincore, at, pages * page, present);
    const bool told = result == 0;
    if (!told && result != -ENOMEM) break;  // that says that there is a gap
    if (!told && pages > least) {
      batch = pages / 2 > least ? pages / 2 / least * least : least;
      continue;
    }
    if (told) {
      const size_t offset = static_cast<size_t>(at - static_cast<const char*>(address));
      resident += count_runs(present, pages, offset, found, context) * page;
      if (batch < most) batch *= 2;
    }
    at += pages * page;
    left -= pages;
  }
  return resident;
}

size_t address_space_limit() noexcept {
  rlimit limit{};
  if (system_call(SYS_prlimit64, 0L, RLIMIT_AS, nullptr, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return SIZE_MAX;
  return limit.rlim_cur;
}

namespace {

// 16 bytes from the kernel, for each process others. libc makes the stack canary of one half and the guard of pointers
// of the other, as they are: they serve here as a key alone.
HashKey system_key() noexcept {
  HashKey key{};
  if (const auto* seed = reinterpret_cast<const void*>(getauxval(AT_RANDOM))) __builtin_memcpy(&key, seed, sizeof key);
  return key;
}

constinit std::atomic<uint64_t> draws{0};  // no two values have the same number

uint64_t nanoseconds(clockid_t clock) noexcept {
  timespec now{};
  if (clock_gettime(clock, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

uint64_t random_bits() noexcept {
  // Every program draws at its start. Without a look at the clock, which it may never need, the 64 KiB of libc around
  // that function stay out of memory.
  const uint64_t words[] = {draws.fetch_add(1, std::memory_order_relaxed)};
  return keyed_hash(system_key(), words);
}

uint64_t secret_bits(bool* weak) noexcept {
  uint64_t bits = 0;
  constexpr unsigned do_not_wait = 1;  // GRND_NONBLOCK
  if (system_call(SYS_getrandom, &bits, sizeof bits, do_not_wait) == sizeof bits) return bits;
  *weak = true;
  const uint64_t words[] = {draws.fetch_add(1, std::memory_order_relaxed),
                            static_cast<uint64_t>(system_call(SYS_getpid)),
                            nanoseconds(CLOCK_REALTIME),
                            nanoseconds(CLOCK_MONOTONIC),
                            reinterpret_cast<uintptr_t>(&bits),   // a stack
                            reinterpret_cast<uintptr_t>(&draws),  // this library
                            reinterpret_cast<uintptr_t>(&environ),
                            getauxval(AT_SYSINFO_EHDR)};
  return keyed_hash(system_key(), words);
}

uint64_t clock_ms() noexcept {
  timespec now{};
  if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now) != 0) return 0;
  return clock_begins_ms + static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

bool is_privileged() noexcept {
  return getauxval(AT_SECURE) != 0;
}

char** environment() noexcept {
  return environ;
}

// A futex is 32 bits wide: the lower half of the word, which changes whenever the word does, but for two threads whose
// tokens agree there, and then the sleeper is woken for nothing.
void wait(std::atomic<uintptr_t>& word, uintptr_t expected) noexcept {
  const timespec limit{0, 10'000'000};
  system_call(SYS_futex, &word, FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(expected), &limit, nullptr, 0);
}

void wait_briefly(std::atomic<uintptr_t>& word, uintptr_t expected) noexcept {
  const timespec limit{0, 100'000};
  system_call(SYS_futex, &word, FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(expected), &limit, nullptr, 0);
}

void wake_one(std::atomic<uintptr_t>& word) noexcept {
  system_call(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void yield() noexcept {
  (void)system_call(SYS_sched_yield);
}

uintptr_t data_segment_end() noexcept {
  return static_cast<uintptr_t>(system_call(SYS_brk, nullptr));
}

bool register_thread_exit(void (*on_exit)(void*)) noexcept {
  exit_key_made = pthread_key_create(&exit_key, on_exit) == 0;
  return exit_key_made;
}

bool arm_thread_exit(void* value) noexcept {
  return exit_key_made && pthread_setspecific(exit_key, value) == 0;
}

void register_fork_handlers(void (*prepare)(), void (*parent)(), void (*child)()) noexcept {
  (void)pthread_atfork(prepare, parent, child);
}

}  // namespace sluice::os
