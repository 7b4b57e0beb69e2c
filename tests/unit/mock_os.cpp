// See mock_os.hpp. Implements os/memory.hpp.
#include "mock_os.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <mutex>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__linux__)
#include "os/linux_call.hpp"
#endif
#include "os/memory.hpp"
#include "os/thread.hpp"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace mock_os {
namespace {

struct State {
  std::mutex lock;
  Call failing = any;
  uint64_t calls_until = 0;  // how many calls succeed before one fails
  bool armed = false;
  uint64_t times = 1;  // how many fail then
  bool failed = false;
  bool unmaps = false;
  size_t limit = SIZE_MAX;
  size_t largest_reservation = SIZE_MAX;
  bool refuses_exact = false;
  size_t all_memory = SIZE_MAX;
  bool locks = false;
  bool has_locked_all = false;
  uintptr_t locked_from = 0;
  uintptr_t locked_end = 0;
  void (*when_arming)() = nullptr;
  bool clock_stands = false;
  uint64_t clock = 0;
  void (*when_waiting)(uint64_t) = nullptr;
  uint64_t touch_time = 0;
  size_t purged_from_memory = SIZE_MAX;
  Call watched = any;
  void (*when_called)() = nullptr;
  std::atomic<size_t> wakes{0};
  size_t reserved = 0;
  std::vector<Record> records;
};

State& state() {
  static State* const one = new State;  // never destroyed: the heap outlives main
  return *one;
}

void arm(Call call, unsigned n, uint64_t times) {
  State& s = state();
  const std::lock_guard guard(s.lock);
  s.failing = call;
  s.calls_until = n - 1;
  s.armed = true;
  s.times = times;
  s.failed = false;
}

bool must_fail(State& s, Call call) {
  if (!s.armed || (s.failing != any && s.failing != call)) return false;
  if (s.calls_until != 0) {
    --s.calls_until;
    return false;
  }
  s.armed = --s.times != 0;
  return s.failed = true;
}

}  // namespace

// Notes a call. Returns: whether it goes on to the system.
bool let_through(Call call, const void* address, size_t bytes, bool exact = false) {
  State& s = state();
  void (*act)() = nullptr;
  {
    const std::lock_guard guard(s.lock);
    if (s.watched == call) std::swap(act, s.when_called);
  }
  if (act != nullptr) act();
  const std::lock_guard guard(s.lock);
  const bool beyond = call == Call::Reserve && s.limit != SIZE_MAX && (bytes > s.limit || s.reserved > s.limit - bytes);
  const bool refused = call == Call::Reserve && (bytes > s.largest_reservation || (exact && s.refuses_exact));
  const uintptr_t start = reinterpret_cast<uintptr_t>(address);
  const bool locked = call == Call::Purge && start < s.locked_end && start + bytes > s.locked_from;
  const bool fails = must_fail(s, call) || beyond || refused || locked;
  if (call == Call::Reserve && !fails) s.reserved += bytes;
  if (call == Call::Release && !fails) s.reserved -= bytes;
  s.records.push_back({call, start, bytes, fails});
  return !fails;
}

void fail_nth(Call call, unsigned n) {
  arm(call, n, 1);
}
void fail_from(Call call, unsigned n) {
  arm(call, n, UINT64_MAX);
}
void fail_first(Call call, unsigned times) {
  arm(call, 1, times);
}

void never_fail() {
  const std::lock_guard guard(state().lock);
  state().armed = false;
}

void unmap_on_failure() {
  const std::lock_guard guard(state().lock);
  state().unmaps = true;
}

void call_when_arming(void (*act)()) {
  const std::lock_guard guard(state().lock);
  state().when_arming = act;
}

void call_at_next(Call call, void (*act)()) {
  const std::lock_guard guard(state().lock);
  state().watched = call;
  state().when_called = act;
}

bool has_failed() {
  const std::lock_guard guard(state().lock);
  return state().failed;
}

void set_address_space_limit(size_t bytes) {
  const std::lock_guard guard(state().lock);
  state().limit = bytes;
}

void refuse_reservations_above(size_t bytes) {
  const std::lock_guard guard(state().lock);
  state().largest_reservation = bytes;
}

void refuse_exact_reservations() {
  const std::lock_guard guard(state().lock);
  state().refuses_exact = true;
}

void set_all_memory(size_t bytes) {
  const std::lock_guard guard(state().lock);
  state().all_memory = bytes;
}

int fork_without_handlers() {
  constexpr size_t calls_of_child = 100'000;
  const std::lock_guard guard(state().lock);
  state().records.reserve(state().records.size() + calls_of_child);  // libc's malloc may be locked there
  return _Fork();
}

void refuse_purges_in(const void* address, size_t bytes) {
  const std::lock_guard guard(state().lock);
  state().locked_from = reinterpret_cast<uintptr_t>(address);
  state().locked_end = state().locked_from + bytes;
}

void lock_all_memory(bool locked) {
  const std::lock_guard guard(state().lock);
  state().has_locked_all = locked;
}

void lock_what_comes(bool locked) {
  const std::lock_guard guard(state().lock);
  state().locks = locked;
}

void set_clock(uint64_t milliseconds) {
  const std::lock_guard guard(state().lock);
  state().clock_stands = true;
  state().clock = milliseconds;
}

void call_when_waiting(void (*act)(uint64_t milliseconds)) {
  const std::lock_guard guard(state().lock);
  state().when_waiting = act;
}

namespace {
thread_local uint32_t own_memory_node = 0;
}

void set_memory_node(uint32_t node) {
  own_memory_node = node;
}

void set_purged_from_memory(size_t bytes) {
  const std::lock_guard guard(state().lock);
  state().purged_from_memory = bytes;
}

void set_touch_time(uint64_t nanoseconds) {
  const std::lock_guard guard(state().lock);
  state().touch_time = nanoseconds;
}

namespace {
std::atomic<size_t> brief_waits_so_far{0};
std::atomic<void (*)()> at_next_brief_wait{nullptr};
}  // namespace

void call_at_next_brief_wait(void (*act)()) {
  at_next_brief_wait.store(act);
}

size_t brief_waits() {
  return brief_waits_so_far.load();
}

size_t wakes() {
  return state().wakes.load(std::memory_order_relaxed);
}

size_t reserved_bytes() {
  const std::lock_guard guard(state().lock);
  return state().reserved;
}

std::vector<Record> records() {
  const std::lock_guard guard(state().lock);
  return state().records;
}

void forget_records() {
  const std::lock_guard guard(state().lock);
  state().records.clear();
}

size_t count(Call call) {
  const std::lock_guard guard(state().lock);
  size_t calls = 0;
  for (const Record& record : state().records)
    calls += record.call == call ? 1 : 0;
  return calls;
}

}  // namespace mock_os

namespace sluice::os {

#if defined(__linux__)
const bool asks_libc = true;
#endif

using mock_os::Call;
using mock_os::let_through;

constinit CallCounts call_counts;

namespace {

constexpr int reserve_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

pthread_key_t exit_key;
bool exit_key_made = false;

// The real system had no room.
void forget_reserved(size_t bytes) {
  const std::lock_guard guard(mock_os::state().lock);
  mock_os::state().reserved -= bytes;
}

// "Some pages may have been dropped": the worst that a purge may leave behind when it fails.
void drop_half(void* address, size_t bytes) {
  (void)madvise(address, bytes / 2 / page_size() * page_size(), MADV_DONTNEED);
}

}  // namespace

size_t page_size() noexcept {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

void* reserve(void* hint, size_t bytes, bool exact) noexcept {
  if (exact) return reserve_at(hint, bytes) == Reserved::Yes ? hint : nullptr;
  if (!let_through(Call::Reserve, hint, bytes)) return nullptr;
  void* const address = mmap(hint, bytes, PROT_NONE, reserve_flags, -1, 0);
  if (address != MAP_FAILED) return address;
  forget_reserved(bytes);
  return nullptr;
}

Reserved reserve_at(void* address, size_t bytes) noexcept {
  if (!let_through(Call::Reserve, address, bytes, true)) return Reserved::Refused;
  void* const got = mmap(address, bytes, PROT_NONE, reserve_flags | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == address) return Reserved::Yes;
  const bool occupied = got != MAP_FAILED || errno == EEXIST;
  if (got != MAP_FAILED) munmap(got, bytes);  // qemu-user takes the address for a hint, as a kernel before 4.17 does
  forget_reserved(bytes);
  return occupied ? Reserved::Occupied : Reserved::Refused;
}

bool release(void* address, size_t bytes) noexcept {
  return let_through(Call::Release, address, bytes) && munmap(address, bytes) == 0;
}

bool commit(void* address, size_t bytes) noexcept {
  return let_through(Call::Commit, address, bytes) && mprotect(address, bytes, PROT_READ | PROT_WRITE) == 0;
}

bool make_readable(void* address, size_t bytes) noexcept {
  return let_through(Call::MakeReadable, address, bytes) && mprotect(address, bytes, PROT_READ) == 0;
}

bool protect(void* address, size_t bytes) noexcept {
  return let_through(Call::Protect, address, bytes) && mprotect(address, bytes, PROT_NONE) == 0;
}

void set_dumped(void*, size_t, bool) noexcept {}

bool purge(void* address, size_t bytes) noexcept {
  if (!let_through(Call::Purge, address, bytes)) {
    drop_half(address, bytes);
    return false;
  }
  return madvise(address, bytes, MADV_DONTNEED) == 0;
}

bool purge(void* address, size_t bytes, size_t* present) noexcept {
  {
    const std::lock_guard guard(mock_os::state().lock);
    *present = std::min(bytes, mock_os::state().purged_from_memory);
  }
  return purge(address, bytes);
}

bool drop(void* address, size_t bytes) noexcept {
  return purge(address, bytes);
}

bool drop_lazily(void* address, size_t bytes) noexcept {
  return let_through(Call::DropLazily, address, bytes) && madvise(address, bytes, MADV_FREE) == 0;
}

bool is_memory_locked() noexcept {
  const std::lock_guard guard(mock_os::state().lock);
  return mock_os::state().has_locked_all;
}

bool is_locked(void*) noexcept {
  const std::lock_guard guard(mock_os::state().lock);
  return mock_os::state().locks;
}

void note_memory_size() noexcept {}

bool can_be_promised(size_t bytes) noexcept {
  const std::lock_guard guard(mock_os::state().lock);
  return bytes <= mock_os::state().all_memory;
}

bool renew(void* address, size_t bytes) noexcept {
  if (!let_through(Call::Renew, address, bytes)) {
    if (mock_os::state().unmaps)
      munmap(address, bytes);
    else
      drop_half(address, bytes);
    return false;
  }
#if defined(__linux__)
  // Past ThreadSanitizer, which would map its own pages for these anew, too: tests count page faults.
  return syscall(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE, reserve_flags | MAP_FIXED, -1, 0) != -1;
#else
  return mmap(address, bytes, PROT_READ | PROT_WRITE, reserve_flags | MAP_FIXED, -1, 0) != MAP_FAILED;
#endif
}

bool renew_purged(void* address, size_t bytes) noexcept {
  return renew(address, bytes);
}

bool move_pages(void* from, void* to, size_t bytes) noexcept {
  if (!let_through(Call::MovePages, from, bytes)) {
    // The worst that a failure may leave behind: Linux 6.17 moves a range of several mappings one by one.
    const size_t first = bytes / 2 / page_size() * page_size();
    munmap(to, bytes);
    if (first != 0) (void)mremap(from, first, first, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to);
    return false;
  }
  return mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) != MAP_FAILED;
}

bool advise_huge_pages(void* address, size_t bytes) noexcept {
  return let_through(Call::AdviseHugePages, address, bytes);
}
bool advise_small_pages(void* address, size_t bytes) noexcept {
  return let_through(Call::AdviseSmallPages, address, bytes);
}

uint64_t touch(void* byte) noexcept {
  *static_cast<volatile char*>(byte) = 0;
  const std::lock_guard guard(mock_os::state().lock);
  return mock_os::state().touch_time;
}

bool is_mapped(const void* address, size_t bytes) noexcept {
  std::vector<unsigned char> present(bytes / page_size());
  return mincore(const_cast<void*>(address), bytes, present.data()) == 0;
}
bool tells_resident() noexcept {
  return false;
}
size_t resident_bytes(const void*, size_t, size_t, FoundResident, void*) noexcept {
  return 0;
}

size_t address_space_limit() noexcept {
  const std::lock_guard guard(mock_os::state().lock);
  return mock_os::state().limit;
}

uint64_t random_bits() noexcept {
  return clock_ms() * 0x9e3779b97f4a7c15u;
}

uint64_t secret_bits(bool*) noexcept {
  return random_bits();
}

uint64_t clock_ms() noexcept {
  {
    const std::lock_guard guard(mock_os::state().lock);
    if (mock_os::state().clock_stands) return mock_os::state().clock;
  }
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

uint32_t memory_node() noexcept {
  return mock_os::own_memory_node;
}

bool is_privileged() noexcept {
  return false;
}
char** environment() noexcept {
  return environ;
}

// Nobody sleeps here: who waits looks again at once.
void wait(std::atomic<uintptr_t>&, uintptr_t) noexcept {
  sched_yield();
}
void wake_one(std::atomic<uintptr_t>&) noexcept {
  mock_os::state().wakes.fetch_add(1, std::memory_order_relaxed);
}
void wait_briefly(std::atomic<uintptr_t>&, uintptr_t) noexcept {
  mock_os::brief_waits_so_far.fetch_add(1);
  if (void (*const act)() = mock_os::at_next_brief_wait.exchange(nullptr); act != nullptr) act();
  sched_yield();
}
void yield() noexcept {
  sched_yield();
}

void use_thread_functions(ThreadCreateFunction*, ThreadJoinFunction*) noexcept {}

bool start_thread(const char*, void (*run)() noexcept, uintptr_t* thread) noexcept {
  if (!let_through(Call::StartThread, nullptr, 0)) return false;
  const auto begin = [](void* function) -> void* {
    reinterpret_cast<void (*)() noexcept>(function)();
    return nullptr;
  };
  pthread_t made{};
  if (pthread_create(&made, nullptr, begin, reinterpret_cast<void*>(run)) != 0) return false;
  *thread = made;
  return true;
}

void join_thread(uintptr_t thread) noexcept {
  pthread_join(thread, nullptr);
}

void wait_for(std::atomic<uintptr_t>&, uintptr_t, uint64_t milliseconds) noexcept {
  void (*act)(uint64_t) = nullptr;
  {
    const std::lock_guard guard(mock_os::state().lock);
    act = mock_os::state().when_waiting;
  }
  if (act != nullptr) act(milliseconds);
  sched_yield();
}

uint32_t process_id() noexcept {
  return static_cast<uint32_t>(getpid());
}

uintptr_t data_segment_end() noexcept {
  return 0;
}

bool register_thread_exit(void (*on_exit)(void*)) noexcept {
  exit_key_made = let_through(Call::RegisterThreadExit, nullptr, 0) && pthread_key_create(&exit_key, on_exit) == 0;
  return exit_key_made;
}

bool arm_thread_exit(void* value) noexcept {
  void (*act)() = nullptr;
  {
    const std::lock_guard guard(mock_os::state().lock);
    act = mock_os::state().when_arming;
  }
  if (act != nullptr) act();
  return let_through(Call::ArmThreadExit, nullptr, 0) && exit_key_made && pthread_setspecific(exit_key, value) == 0;
}

void register_fork_handlers(void (*prepare)(), void (*parent)(), void (*child)()) noexcept {
  (void)pthread_atfork(prepare, parent, child);
}

}  // namespace sluice::os
