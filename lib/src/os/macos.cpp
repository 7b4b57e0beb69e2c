// The operating-system layer for macOS. Its system calls are reached through libSystem alone: their numbers are no
// interface there. Open it when a call or its flags are in question.
#include <crt_externs.h>
#include <errno.h>
#include <mach/mach.h>
#include <mach/mach_time.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "os/atomic_ref.hpp"
#include "os/keyed_hash.hpp"
#include "os/macos_calls.hpp"
#include "os/memory.hpp"
#include "os/thread_word.hpp"

namespace sluice::os {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "who waits compares the lower half of a word");

constinit CallCounts call_counts;

namespace {

constexpr int reserve_flags = MAP_PRIVATE | MAP_ANON | MAP_NORESERVE;
// What vmmap and footprint show of a mapping: the first of the tags that the system leaves to programs.
constexpr int tag = VM_MAKE_TAG(VM_MEMORY_APPLICATION_SPECIFIC_1);

void count(std::atomic<uint64_t>& counter) noexcept {
  counter.fetch_add(1, std::memory_order_relaxed);
}

bool succeeded(bool well) noexcept {
  if (!well) count(call_counts.failed_calls);
  return well;
}

// Null on failure.
void* map(void* address, size_t bytes, int protection, int flags) noexcept {
  count(call_counts.mmap_calls);
  void* const result = mmap(address, bytes, protection, flags, tag, 0);
  return succeeded(result != MAP_FAILED) ? result : nullptr;
}

bool set_protection(void* address, size_t bytes, int protection) noexcept {
  count(call_counts.mprotect_calls);
  return succeeded(mprotect(address, bytes, protection) == 0);
}

pthread_key_t exit_key;
bool exit_key_made = false;

// The system takes the value out of the slot before it calls this, and calls again for what it finds there: the word
// stays what it is for what runs later at the end of the thread.
void keep_word(void* value) {
  thread_word_detail::store(value);
}

}  // namespace

// Keys for programs are given from 256 on, in order: this one only when as many others are in use.
constinit size_t thread_slot = 511;

bool prepare_thread_words() noexcept {
  static constinit bool prepared = false;
  pthread_key_t key = 0;
  if (!prepared && pthread_key_create(&key, keep_word) == 0) {
    atomic_ref(thread_slot).store(key, std::memory_order_release);
    prepared = true;
  }
  return prepared;
}

size_t page_size() noexcept {
#if defined(__x86_64__)
  return 4096;  // also of what Apple's processors run by translation
#else
  return 16384;
#endif
}

void* reserve(void* hint, size_t bytes, bool exact) noexcept {
  if (exact) return reserve_at(hint, bytes) == Reserved::Yes ? hint : nullptr;
  return map(hint, bytes, PROT_NONE, reserve_flags);
}

Reserved reserve_at(void* address, size_t bytes) noexcept {
  void* const got = map(address, bytes, PROT_NONE, reserve_flags);  // the address is a hint
  if (got == nullptr) return Reserved::Refused;
  if (got == address) return Reserved::Yes;
  (void)release(got, bytes);
  return Reserved::Occupied;
}

bool release(void* address, size_t bytes) noexcept {
  count(call_counts.munmap_calls);
  return succeeded(munmap(address, bytes) == 0);
}

bool commit(void* address, size_t bytes) noexcept {
  return set_protection(address, bytes, PROT_READ | PROT_WRITE);
}

bool make_readable(void* address, size_t bytes) noexcept {
  return set_protection(address, bytes, PROT_READ);
}

bool protect(void* address, size_t bytes) noexcept {
  return set_protection(address, bytes, PROT_NONE);
}

void set_dumped(void*, size_t, bool) noexcept {}

// A new mapping in the place of the old one: the old pages go at once, and the new ones read as zero. madvise has
// nothing that does both: MADV_FREE and MADV_FREE_REUSABLE leave the contents to chance, MADV_DONTNEED keeps them, and
// MADV_ZERO the memory. The system puts the old mapping back if it cannot make the new one.
bool purge(void* address, size_t bytes) noexcept {
  if (!drop(address, bytes)) return false;
  call_counts.purged_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

bool purge(void* address, size_t bytes, size_t* present) noexcept {
  *present = bytes;
  return purge(address, bytes);
}

bool drop(void* address, size_t bytes) noexcept {
  return renew(address, bytes);
}

bool drop_lazily(void*, size_t) noexcept {
  return false;
}

// There is no mlockall, and a range that was locked alone is unlocked by the new mapping.
bool is_memory_locked() noexcept {
  return false;
}

bool is_locked(void*) noexcept {
  return false;
}

void note_memory_size() noexcept {}

// The system promises what fits into the address space, and writes to files what does not fit into memory.
bool can_be_promised(size_t) noexcept {
  return true;
}

bool renew(void* address, size_t bytes) noexcept {
  return map(address, bytes, PROT_READ | PROT_WRITE, reserve_flags | MAP_FIXED) != nullptr;
}

bool renew_purged(void*, size_t) noexcept {
  return false;
}

bool move_pages(void*, void*, size_t) noexcept {
  return false;
}

bool advise_huge_pages(void*, size_t) noexcept {
  return false;
}

bool advise_small_pages(void*, size_t) noexcept {
  return false;
}

uint64_t touch(void*) noexcept {
  return 0;
}

bool is_mapped(const void* address, size_t bytes) noexcept {
  const auto start = reinterpret_cast<vm_address_t>(address);
  for (vm_address_t at = start; at < start + bytes;) {
    vm_address_t found = at;
    vm_size_t size = 0;
    vm_region_basic_info_data_64_t info;
    mach_msg_type_number_t words = VM_REGION_BASIC_INFO_COUNT_64;
    mach_port_t object = MACH_PORT_NULL;
    if (vm_region_64(mach_task_self(), &found, &size, VM_REGION_BASIC_INFO_64,
                     reinterpret_cast<vm_region_info_t>(&info), &words, &object) != KERN_SUCCESS ||
        found > at)
      return false;
    at = found + size;
  }
  return true;
}

namespace {

// Tells about each run of pages in memory. Returns: how many pages are.
size_t count_runs(const char* present, size_t pages, size_t offset, FoundResident found, void* context) noexcept {
  size_t resident = 0;
  for (size_t i = 0, end = 0; i < pages; i = end + 1) {
    for (end = i; end < pages && (present[end] & MINCORE_INCORE) != 0;)
      ++end;
    resident += end - i;
    if (found != nullptr && end != i) found(context, offset + i * page_size(), (end - i) * page_size());
  }
  return resident;
}

}  // namespace

bool tells_resident() noexcept {
  return true;
}

// Pages that are not mapped are told as not in memory.
size_t resident_bytes(const void* address, size_t bytes, size_t, FoundResident found, void* context) noexcept {
  constexpr size_t most = 4096;  // pages asked about at once
  char present[most] = {};
  const char* const start = static_cast<const char*>(address);
  size_t resident = 0;
  for (size_t page = 0, all = bytes / page_size(); page < all;) {
    const size_t pages = all - page < most ? all - page : most;
    const size_t offset = page * page_size();
    if (mincore(start + offset, pages * page_size(), present) != 0) break;
    resident += count_runs(present, pages, offset, found, context) * page_size();
    page += pages;
  }
  return resident;
}

size_t address_space_limit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= RLIM_INFINITY) return SIZE_MAX;
  return limit.rlim_cur;
}

namespace {

constinit std::atomic<uint64_t> draws{0};  // no two values have the same number

// What is drawn once and hashed with the number of the draw: the kernel's generator is asked by a system call.
const HashKey& key_of_process() noexcept {
  static constinit HashKey key{};
  static constinit std::atomic<uint32_t> state{0};  // 0: not drawn; 1: being drawn; 2: there
  uint32_t seen = 0;
  if (state.load(std::memory_order_acquire) == 2) return key;
  if (state.compare_exchange_strong(seen, 1, std::memory_order_acquire)) {
    if (getentropy(&key, sizeof key) != 0) key = {mach_absolute_time(), reinterpret_cast<uintptr_t>(&seen)};
    state.store(2, std::memory_order_release);  // pairs with the first load
  }
  return key;  // another thread may draw it now: zeros serve as well as a key that is half there
}

}  // namespace

uint64_t random_bits() noexcept {
  const uint64_t words[] = {draws.fetch_add(1, std::memory_order_relaxed), mach_absolute_time(), own_address()};
  return keyed_hash(key_of_process(), words);
}

uint64_t secret_bits(bool* weak) noexcept {
  uint64_t bits = 0;
  if (getentropy(&bits, sizeof bits) == 0) return bits;
  *weak = true;
  return random_bits();
}

uint64_t clock_ms() noexcept {
  return clock_begins_ms + clock_gettime_nsec_np(CLOCK_UPTIME_RAW_APPROX) / 1'000'000;
}

uint32_t memory_node() noexcept {
  return 0;
}

bool is_privileged() noexcept {
  return issetugid() != 0;
}

char** environment() noexcept {
  char*** const place = _NSGetEnviron();
  return place != nullptr ? *place : nullptr;
}

void wait(std::atomic<uintptr_t>& word, uintptr_t expected) noexcept {
  wait_on(word, expected, 10'000);
}

void wait_briefly(std::atomic<uintptr_t>& word, uintptr_t expected) noexcept {
  wait_on(word, expected, 100);
}

void wake_one(std::atomic<uintptr_t>& word) noexcept {
  wake_on(word);
}

void yield() noexcept {
  (void)sched_yield();
}

uintptr_t data_segment_end() noexcept {
  return 0;
}

bool register_thread_exit(void (*on_exit)(void*)) noexcept {
  exit_key_made = pthread_key_create(&exit_key, on_exit) == 0;
  return exit_key_made;
}

bool arm_thread_exit(void* value) noexcept {
  return exit_key_made && pthread_setspecific(exit_key, value) == 0;
}

namespace {

struct ForkHandlers {
  void (*prepare)();
  void (*parent)();
  void (*child)();
};
constexpr unsigned most_fork_handlers = 4;
constinit ForkHandlers fork_handlers[most_fork_handlers]{};
constinit std::atomic<unsigned> fork_handler_count{0};

void run(void (*handler)()) noexcept {
  if (handler != nullptr) handler();
}

}  // namespace

// libSystem forks while it holds the locks of all zones: it is there that the handlers run (preload/macho_zone.cpp).
// Registered by who starts the heap, before other threads use it, and by a constructor.
void register_fork_handlers(void (*prepare)(), void (*parent)(), void (*child)()) noexcept {
  const unsigned count = fork_handler_count.load(std::memory_order_relaxed);
  if (count == most_fork_handlers) __builtin_trap();  // more are registered than there are in the source
  fork_handlers[count] = {prepare, parent, child};
  fork_handler_count.store(count + 1, std::memory_order_release);  // pairs with the functions below
}

void run_before_fork() noexcept {
  for (unsigned i = fork_handler_count.load(std::memory_order_acquire); i != 0; --i)
    run(fork_handlers[i - 1].prepare);
}

void run_after_fork() noexcept {
  for (unsigned i = 0, count = fork_handler_count.load(std::memory_order_acquire); i != count; ++i)
    run(fork_handlers[i].parent);
}

void run_in_child() noexcept {
  for (unsigned i = 0, count = fork_handler_count.load(std::memory_order_acquire); i != count; ++i)
    run(fork_handlers[i].child);
}

}  // namespace sluice::os
