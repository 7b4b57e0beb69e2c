// See regular.hpp.
#include "heap/regular.hpp"

#include "base/keep_errno.hpp"
#include "base/options.hpp"
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
  const uint64_t now = os::clock_ms();
  if (now < due) return;
  const uint64_t next = now + interval.load(std::memory_order_relaxed);
  if (!due_ms.compare_exchange_strong(due, next, std::memory_order_relaxed)) return;  // another thread does it
  const KeepErrno keep;
  if (!work.load(std::memory_order_relaxed)() && now + retry_ms < next)
    due_ms.store(now + retry_ms, std::memory_order_relaxed);
}

uint64_t until_due() noexcept {
  const uint64_t due = due_ms.load(std::memory_order_relaxed);
  const uint64_t now = os::clock_ms();
  return due == never ? never : due > now ? due - now : 0;
}

}  // namespace sluice::regular
