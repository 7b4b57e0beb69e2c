// Slots that hold blocks, every entry point by which a C or C++ program gets, changes and ends them, and places where
// threads leave blocks for each other. Each block is filled when it comes and checked before it goes. Open it to change
// what the soak programs do with memory.
#pragma once

#include <malloc.h>
#include <sys/mman.h>

#include <mutex>
#include <new>
#include <utility>

#include "run.hpp"

namespace soak {

// How a block came, and so how it ends.
enum class Origin : uint8_t { Malloc, New, NewArray, NewAligned };

struct Block {
  unsigned char* data = nullptr;
  size_t size = 0;
  uint64_t seed = 0;  // of its contents; no address goes into it
  size_t alignment = 0;
  Origin origin = Origin::Malloc;
};

inline void fill(const Block& block) {
  sluice::test::for_each_stretch(block.size, [&block](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i)
      block.data[i] = subject::payload_byte(block.seed, i);
    return true;
  });
}
inline bool holds_until(const Block& block, size_t end) {
  return sluice::test::for_each_stretch(block.size, [&block, end](size_t first, size_t last) {
    for (size_t i = first; i < std::min(last, end); ++i)
      if (block.data[i] != subject::payload_byte(block.seed, i)) return false;
    return true;
  });
}
inline void require_intact(const Block& block, const char* when) {
  if (!holds_until(block, block.size))
    Run::fail("a block of %zu bytes at %p lost its contents (%s)", block.size, static_cast<void*>(block.data), when);
}

inline void end_block(const Block& block) {
  switch (block.origin) {
    case Origin::Malloc:
      return free(block.data);
    case Origin::New:
      return block.seed % 2 == 0 ? operator delete(block.data) : operator delete(block.data, block.size);
    case Origin::NewArray:
      return operator delete[](block.data);
    case Origin::NewAligned:
      const auto alignment = static_cast<std::align_val_t>(block.alignment);
      return block.seed % 2 == 0 ? operator delete(block.data, alignment) :
                                 operator delete(block.data, block.size, alignment);
  }
}

// Checks the block, and frees it.
inline void discard(const Block& block) {
  if (block.data == nullptr) return;
  require_intact(block, "before it was freed");
  end_block(block);
}

// Fixed memory outside of the heap under test.
template <class T>
class Table {
 public:
  explicit Table(size_t count)
      : count_(count),
        data_(static_cast<T*>(mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    if (static_cast<void*>(data_) == MAP_FAILED) Run::fail("no memory for a table");
  }
  ~Table() { munmap(static_cast<void*>(data_), count_ * sizeof(T)); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  T& operator[](size_t i) { return data_[i]; }
  size_t size() const { return count_; }
  // What lies in entries from `first` on goes back to the system, all but a page of it.
  void forget_from(size_t first) {
    const size_t begin = (first * sizeof(T) + 4095) / 4096 * 4096;
    if (begin < count_ * sizeof(T))
      madvise(reinterpret_cast<char*>(data_) + begin, count_ * sizeof(T) - begin, MADV_DONTNEED);
  }

 private:
  size_t count_;
  T* data_;
};

// Used by one thread at a time.
class Store {
 public:
  // `most` bytes is the largest size; so many of 2,000 blocks may be that large.
  Store(size_t slots, uint64_t seed, size_t most, unsigned large_of_2000 = 1)
      : blocks_(slots), random_(seed), most_(most), large_of_2000_(large_of_2000) {}
  ~Store() { release_all(); }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Whether calls may return null with ENOMEM; each that does is counted as a fault.
  void may_run_out(bool may) { may_run_out_ = may; }

  Random& random() { return random_; }
  size_t slots() const { return blocks_.size(); }
  size_t any_slot() { return random_.below(blocks_.size()); }

  Block take(size_t slot) { return std::exchange(blocks_[slot], Block{}); }
  void give(size_t slot, const Block& block) {
    release(slot);
    blocks_[slot] = block;
  }
  void release(size_t slot) { discard(take(slot)); }
  void release_all() {
    for (size_t slot = 0; slot < blocks_.size(); ++slot)
      release(slot);
  }
  void check_all() {
    for (size_t slot = 0; slot < blocks_.size(); ++slot)
      if (blocks_[slot].data != nullptr) require_intact(blocks_[slot], "while it was held");
  }

  // One call that the generator chooses, or a few.
  void step() {
    ++totals.operations;
    const size_t slot = any_slot();
    Block& block = blocks_[slot];
    const uint64_t choice = random_.below(1000);
    if (choice < 350) {
      release(slot);
    } else if (choice < 500 && block.data != nullptr && block.origin == Origin::Malloc) {
      resize(block);
    } else if (choice < 540 && block.data != nullptr) {
      require_intact(block, "at random");
    } else if (choice == 541 && random_.chance(5)) {
      malloc_trim(random_.size(MiB));
    } else {
      release(slot);
      allocate(slot);
    }
  }

 private:
  // As many small as large in powers of two up to 64 KiB; larger ones are rare.
  size_t size() {
    const uint64_t kind = random_.below(2000);
    const size_t limit = kind < large_of_2000_ ? most_ : kind < 20 ? MiB : 64 * KiB;
    const size_t highest = size_t{1} << random_.below(64 - static_cast<size_t>(__builtin_clzll(limit)));
    return std::min(random_.below(2 * highest), most_);
  }

  void refuse() {
    if (!may_run_out_) Run::fail("no memory (errno %d)", errno);
    if (errno != ENOMEM) Run::fail("no memory, and errno is %d", errno);
    ++totals.faults;
  }

  // One of the entry points. Returns: null when there is no memory.
  void* ask(Block& block) {
    const size_t alignment = size_t{1} << random_.below(random_.chance(5) ? 17 : 9);
    const auto call = random_.below(20);
    if (call >= 13) return malloc(block.size);
    if (call >= 5 && call <= 9) block.alignment = std::max(alignment, sizeof(void*));
    void* result = nullptr;
    switch (call) {
      case 0:
        result = calloc(1, block.size);
        break;
      case 1:
        block.size -= block.size % 7;
        result = calloc(block.size / 7, 7);
        break;
      case 2:
        return realloc(nullptr, block.size += block.size == 0);
      case 3:
        block.size -= block.size % 3;
        return reallocarray(nullptr, block.size / 3, 3);
      case 4:
        block.origin = Origin::New;
        return operator new(block.size, std::nothrow);
      case 5:
        block.size -= block.size % block.alignment;
        return aligned_alloc(block.alignment, block.size);
      case 6:
        errno = posix_memalign(&result, block.alignment, block.size);
        return errno == 0 ? result : nullptr;
      case 7:
        return memalign(block.alignment, block.size);
      case 8:
      case 9:
        block.origin = Origin::NewAligned;
        return operator new(block.size, static_cast<std::align_val_t>(block.alignment));
      case 10:
        block.origin = Origin::NewArray;
        return operator new[](block.size);
      case 11:
        block.origin = Origin::New;
        return operator new(block.size);
      default:
        block.alignment = 4096;
        return valloc(block.size);
    }
    if (result != nullptr && !sluice::test::holds(static_cast<unsigned char*>(result), block.size, 0))
      Run::fail("calloc: %zu bytes at %p are not zero", block.size, result);
    return result;
  }

  void allocate(size_t slot) {
    // Small blocks of some allocators are aligned to no more than 8; what is asked for must hold.
    Block block{nullptr, size(), random_.next(), sizeof(void*), Origin::Malloc};
    errno = 0;
    try {
      block.data = static_cast<unsigned char*>(hide(ask(block)));
    } catch (const std::bad_alloc&) {
      errno = ENOMEM;
    }
    if (block.data == nullptr && block.origin != Origin::Malloc) errno = ENOMEM;  // operator new sets none
    if (block.data == nullptr && block.size != 0) return refuse();
    if (block.data == nullptr) return;
    if (reinterpret_cast<uintptr_t>(block.data) % block.alignment != 0)
      Run::fail("%p is not aligned to %zu", static_cast<void*>(block.data), block.alignment);
    const size_t usable = malloc_usable_size(block.data);
    if (usable < block.size) Run::fail("usable size %zu of %zu bytes", usable, block.size);
    if (block.origin == Origin::Malloc && random_.chance(10)) block.size = usable;
    fill(block);
    blocks_[slot] = block;
  }

  void resize(Block& block) {
    // Often a little more, as growing strings and vectors ask for it.
    const size_t wanted = 1 + (random_.chance(50) ? block.size + random_.below(block.size / 2 + 64) : size());
    require_intact(block, "before realloc");
    errno = 0;
    void* const moved = random_.chance(80) ? realloc(block.data, wanted) : reallocarray(block.data, 1, wanted);
    if (moved == nullptr) return refuse();
    block.data = static_cast<unsigned char*>(moved);
    if (!holds_until({block.data, block.size, block.seed, sizeof(void*), Origin::Malloc}, wanted))
      Run::fail("realloc from %zu to %zu bytes lost contents", block.size, wanted);
    block = {block.data, wanted, random_.next(), sizeof(void*), Origin::Malloc};
    fill(block);
  }

  Table<Block> blocks_;
  Random random_;
  size_t most_;
  unsigned large_of_2000_;
  bool may_run_out_ = false;
};

// Where threads leave blocks for whoever comes. A lock for a few slots; in a forked child some may be held for ever,
// and their slots are passed by.
class Exchange {
 public:
  static constexpr size_t slots = 1024;

  // Returns: what lay in a slot, for which the block is left there.
  Block swap(const Block& block, uint64_t number) {
    Slot& slot = slots_[number % slots];
    const std::unique_lock guard(slot.lock, std::try_to_lock);
    if (!guard) return block;
    return std::exchange(slot.block, block);
  }
  void release_all() {
    for (Slot& slot : slots_) {
      const std::unique_lock guard(slot.lock, std::try_to_lock);
      if (guard) discard(std::exchange(slot.block, Block{}));
    }
  }

 private:
  struct Slot {
    std::mutex lock;
    Block block;
  };
  Slot slots_[slots];
};

}  // namespace soak
