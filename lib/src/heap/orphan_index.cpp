// See orphan_index.hpp.
#include "heap/orphan_index.hpp"

namespace sluice::orphan_index {
namespace {

constinit std::atomic<ThreadCache*> stacks[size_class_count]{};

}  // namespace

void put_back(ThreadCache& orphan, unsigned k) noexcept {
  ThreadCache* head = stacks[k].load(std::memory_order_relaxed);
  do
    orphan.next_noted[k] = head;
  while (!stacks[k].compare_exchange_weak(head, &orphan, std::memory_order_release, std::memory_order_relaxed));
}

void note(ThreadCache& orphan, unsigned k) noexcept {
  // Pairs with forget().
  if (!orphan.noted[k].exchange(true, std::memory_order_acq_rel)) put_back(orphan, k);
}

void note_all(ThreadCache& orphan) noexcept {
  for (unsigned k = 1; k < size_class_count; ++k)
    if (orphan.partial[k] != unit_index_none) note(orphan, k);
}

bool empty(unsigned k) noexcept {
  return stacks[k].load(std::memory_order_relaxed) == nullptr;
}

ThreadCache* take(unsigned k) noexcept {
  // Acquire: pairs with put_back. Others only add: what lies below the head does not change.
  ThreadCache* head = stacks[k].load(std::memory_order_acquire);
  while (head != nullptr && !stacks[k].compare_exchange_weak(head, head->next_noted[k], std::memory_order_acquire)) {
  }
  return head;
}

ThreadCache* take_all(unsigned k) noexcept {
  return stacks[k].exchange(nullptr, std::memory_order_acquire);  // pairs with put_back
}

void forget(ThreadCache& cache, unsigned k) noexcept {
  (void)cache.noted[k].exchange(false, std::memory_order_acq_rel);  // pairs with note()
}

}  // namespace sluice::orphan_index
