// See leak_check.hpp.
#include "stats/leak_check.hpp"

#include <atomic>

#include "heap/thread_cache.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"
#include "os/roots.hpp"
#include "os/unwind.hpp"

namespace sluice::stats {
namespace {

constexpr unsigned usual_patience_ms = 60'000;
constexpr unsigned short_patience_ms = 3'000;  // at a signal that ends the process, which ends it after 5 s in any case
constexpr unsigned writing_ms = 20'000;        // what the copy may take beyond that

// What the copy tells the process.
struct Shared {
  std::atomic<bool> has_written;
};

std::string_view reason_of(Reachability::Outcome outcome) noexcept {
  switch (outcome) {
    case Reachability::Outcome::Done:
      return {};
    case Reachability::Outcome::NoMemory:
      return "no memory to look for pointers";
    case Reachability::Outcome::NoRoots:
      return "/proc/self/maps cannot be read";
    case Reachability::Outcome::TooLong:
      break;
  }
  return "it took too long";
}

[[noreturn]] void work_in_copy(const os::ThreadMark& mark, uint64_t until_ms, Shared& shared, WriteInCopy write,
                               void* context) noexcept {
  os::forget_stacks();
  Reachability reachability;
  auto outcome = Reachability::Outcome::NoMemory;
  if (const profile::Reading now(true); now) outcome = reachability.find(now.records(), mark, until_ms);
  // The profile is read again there; nobody has changed it meanwhile.
  const bool is_known = outcome == Reachability::Outcome::Done;
  if (write(context, is_known ? &reachability : nullptr, reason_of(outcome)))
    shared.has_written.store(true, std::memory_order_release);
  os::end_process(0);
}

}  // namespace

// Not inlined, and with what callers keep in registers on its stack: where the copy begins to look.
__attribute__((noinline)) LeakCheck check_leaks(bool wait, WriteInCopy write, void* context) noexcept {
  __builtin_unwind_init();
  uintptr_t stack_pointer;
#if defined(__x86_64__)
  asm volatile("movq %%rsp, %0" : "=r"(stack_pointer));
#elif defined(__aarch64__)
  asm volatile("mov %0, sp" : "=r"(stack_pointer));
#else
  stack_pointer = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
#endif
  auto* const shared = static_cast<Shared*>(os::map_shared(sizeof(Shared)));
  if (shared == nullptr) return {LeakCheck::Outcome::Failed, "no memory to look for pointers"};
  const os::ThreadMark mark = os::mark_thread(stack_pointer);
  if (wait)
    cache::lock_all();
  else if (!cache::try_lock_all())
    return os::unmap_scratch(shared, sizeof(Shared)), LeakCheck{LeakCheck::Outcome::Busy, {}};
  const int copy = os::copy_process();
  if (wait)
    cache::unlock_all();
  else
    cache::unlock_tried();
  const unsigned patience = wait ? usual_patience_ms : short_patience_ms;
  if (copy == 0) work_in_copy(mark, os::clock_ms() + patience, *shared, write, context);
  if (copy > 0) os::await_copy(copy, patience + (wait ? writing_ms : 0));
  const bool has_written = copy > 0 && shared->has_written.load(std::memory_order_acquire);
  os::unmap_scratch(shared, sizeof(Shared));
  if (has_written) return {LeakCheck::Outcome::Done, {}};
  return {LeakCheck::Outcome::Failed, copy < 0 ? "the system makes no copy of the process, which looks for pointers"
                                               : "the copy of the process that looks for pointers has ended early"};
}

}  // namespace sluice::stats
