// See regular.hpp.
#include "heap/regular.hpp"

#include "base/options.hpp"
#include "os/keep_errno.hpp"
#include "os/memory.hpp"

namespace sluice::regular {

constinit std::atomic<uint64_t> due_ms{never};

namespace {

constexpr uint64_t retry_ms = 50;  // where a lock of the heap was held

constinit std::atomic<Work> work{nullptr};
constinit std::atomic<uint64_t> interval{0};

}  // namespace

void start(Work new_work, uint64_t interval_ms) noexcept {
  if (interval_ms >= delay_never) return;
  work.store(new_work, std::memory_order_relaxed);
  interval.store(interval_ms, std::memory_order_relaxed);
  due_ms.store(os::clock_ms() + interval_ms, std::memory_order_release);  // pairs with look
}

void look() noexcept {
  uint64_t due = due_ms.load(std::memory_order_acquire);  // pairs with start
  if (due == never || os::clock_ms() < due) return;
  // There is no work while somebody does it, and for as long as a disk hangs.
  if (!due_ms.compare_exchange_strong(due, never, std::memory_order_acquire, std::memory_order_relaxed)) return;
  const KeepErrno keep;
  const uint64_t every = interval.load(std::memory_order_relaxed);
  const bool done = work.load(std::memory_order_relaxed)();
  due_ms.store(os::clock_ms() + (done || every < retry_ms ? every : retry_ms), std::memory_order_release);
}

void start_in_child(bool goes_on) noexcept {
  if (work.load(std::memory_order_relaxed) == nullptr) return;
  const uint64_t due = goes_on ? os::clock_ms() + interval.load(std::memory_order_relaxed) : never;
  due_ms.store(due, std::memory_order_release);
}

uint64_t until_due() noexcept {
  const uint64_t due = due_ms.load(std::memory_order_relaxed);
  const uint64_t now = os::clock_ms();
  return due == never ? never : due > now ? due - now : 0;
}

}  // namespace sluice::regular
