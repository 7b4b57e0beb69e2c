// See lock_order.hpp.
#include "base/lock_order.hpp"

#include "base/check.hpp"

#if defined(SLUICE_CHECKED)

namespace sluice::lock_order {
namespace {

constinit thread_local HeldLocks held __attribute__((tls_model("initial-exec"))){};

}  // namespace

void taken(LockRank rank) noexcept {
  held.add(rank);
}

void given_back(LockRank rank) noexcept {
  held.remove(rank);
}

void require(LockRank rank, const void* lock) noexcept {
  check(held.may_wait_for(rank), "locks are taken out of order: a thread waits for one", lock);
}

void fail_not_held(const void* lock) noexcept {
  fail_check("a lock is not held that its data is changed under", lock);
}

}  // namespace sluice::lock_order

#endif
