// A queue of things on their way between threads, any number on either side. Open it when stress or soak tests hand
// blocks from thread to thread.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

namespace sluice::test {

// It allocates nothing once it is made: a fork must not catch another thread inside malloc, and what is measured is not
// the queue. Storage(n) holds n items.
template <class Item, class Storage = std::vector<Item>>
class BoundedQueue {
 public:
  BoundedQueue() : items_(capacity) {}
  // False when there is no room.
  bool push(const Item& item) {
    const std::lock_guard guard(lock_);
    if (count_ == capacity) return false;
    items_[(first_ + count_++) % capacity] = item;
    return true;
  }
  // False when there is nothing.
  bool pop(Item& item) {
    const std::lock_guard guard(lock_);
    if (count_ == 0) return false;
    item = items_[first_];
    first_ = (first_ + 1) % capacity;
    --count_;
    return true;
  }

 private:
  static constexpr size_t capacity = 4096;
  std::mutex lock_;
  Storage items_;
  size_t first_ = 0, count_ = 0;
};

}  // namespace sluice::test
