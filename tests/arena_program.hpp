// A program that runs with the stack arena: slots that hold blocks, scopes that are opened and left, and every call
// that a program makes on blocks. Each one checks alignment, usable size, zeroes and that no byte changed. Open it to
// see what the arena's stress and fuzz tests do.
#pragma once

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "arena_calls.hpp"
#include "random_blocks.hpp"

namespace sluice::test {

// Used by the thread that made it.
class ArenaProgram {
 public:
  ArenaProgram(size_t slots, uint64_t seed) : blocks_(slots), random_(seed) {}
  ~ArenaProgram() {
    leave_all();
    release_all();
  }
  ArenaProgram(const ArenaProgram&) = delete;
  ArenaProgram& operator=(const ArenaProgram&) = delete;

  // The first thing that was wrong; empty while all is well.
  const std::string& wrong() const noexcept { return wrong_; }
  size_t slots() const noexcept { return blocks_.size(); }
  Random& random() noexcept { return random_; }

  // Whether the heap may say that there is no memory: null with errno ENOMEM, and realloc keeps the block.
  void may_run_out(bool may) noexcept { may_run_out_ = may; }

  void enter(unsigned flags) {
    if (open_ < most_open) (void)arena::enter(&scopes_[open_++], flags);
  }
  void leave() {
    if (open_ != 0) arena::leave(&scopes_[--open_]);
  }
  // Leaves the scope that was the n-th to be opened, and so all that were opened after it.
  void leave_from(size_t n) {
    if (n >= open_) return;
    arena::leave(&scopes_[n]);
    open_ = n;
  }
  void leave_all() { leave_from(0); }
  // Leaves a scope that is not open.
  void leave_stale() {
    sluice_scope stale{};
    arena::leave(&stale);
  }
  size_t open_scopes() const noexcept { return open_; }

  void allocate(size_t slot, size_t size) {
    release(slot);
    accept(slot, scoped_allocate(size), size, min_alignment);
  }
  void allocate_zeroed(size_t slot, size_t count, size_t size) {
    release(slot);
    void* const data = arena::allocate_zeroed(count, size);
    if (data != nullptr && !all_bytes(data, count * size, 0)) fail("calloc: not zero");
    accept(slot, data, count * size, min_alignment);
  }
  // Requires: alignment is a power of two.
  void allocate_aligned(size_t slot, size_t alignment, size_t size) {
    release(slot);
    accept(slot, arena::allocate_aligned(alignment, size), size, alignment);
  }
  // Requires: size > 0.
  void reallocate(size_t slot, size_t size) {
    Block& block = blocks_[slot];
    if (block.data != nullptr && !intact(block)) fail("changed before realloc");
    Block old = block;
    errno = 0;
    old.data = static_cast<unsigned char*>(arena::reallocate(block.data, size));
    if (old.data == nullptr) return refuse();
    if (!intact_after_resize(old, size)) fail("realloc: contents lost");
    block = {};
    accept(slot, old.data, size, min_alignment);
  }
  void release(size_t slot) {
    discard(take(slot));
    errno = 0;
  }
  void release_all() {
    for (size_t slot = blocks_.size(); slot-- > 0;)
      release(slot);
  }

  // Ends a block that may come from another program.
  void discard(const Block& block) {
    if (block.data == nullptr) return;
    if (!intact(block)) fail("changed while it was held");
    scoped_free(block.data);
  }
  Block take(size_t slot) noexcept { return std::exchange(blocks_[slot], Block{}); }
  // Requires: the block is a whole one, or none.
  void give(size_t slot, const Block& block) {
    release(slot);
    blocks_[slot] = block;
  }

  // One operation that the generator chooses. Slots are filled and emptied like a stack as often as in any order.
  void step() {
    const bool stacked = random_.chance(50);
    const uint64_t choice = random_.below(100);
    if (choice < 3) return enter(random_.chance(80) ? SLUICE_ROUTE : SLUICE_NOROUTE);
    if (choice < 6) return leave();
    if (choice < 7) return random_.chance(50) ? leave_from(random_.below(most_open)) : leave_stale();
    const size_t slot = stacked ? top_ : random_.below(blocks_.size());
    if (choice < 45) {
      if (stacked) top_ = (top_ + 1) % blocks_.size();
      return allocate(slot, size());
    }
    if (choice < 75) {
      if (stacked) top_ = (top_ + blocks_.size() - 1) % blocks_.size();
      return release(slot);
    }
    if (choice < 82) return allocate_zeroed(slot, 1 + random_.below(3), size() / 2);
    if (choice < 95) return reallocate(slot, 1 + size());
    allocate_aligned(slot, size_t{1} << random_.below(14), size());
  }

 private:
  static constexpr size_t most_open = arena::most_scopes + 4;

  // Mostly small; some about as large as a scope takes; a few beyond.
  size_t size() noexcept {
    const uint64_t kind = random_.below(1000);
    return random_.below(kind < 850 ? 256 : kind < 970 ? 3000 : kind < 995 ? arena::most_bytes + 200 : 200'000);
  }

  void fail(const char* what) {
    if (wrong_.empty()) wrong_ = what;
  }
  void refuse() {
    if (!may_run_out_) return fail("no memory");
    if (errno != ENOMEM) fail("no memory, and errno does not say so");
  }
  void accept(size_t slot, void* data, size_t size, size_t alignment) {
    if (data == nullptr) return refuse();
    if (reinterpret_cast<uintptr_t>(data) % std::max(alignment, min_alignment) != 0) fail("wrong alignment");
    if (arena::usable_size(data) < size) fail("usable size is too small");
    blocks_[slot] = {static_cast<unsigned char*>(data), size, static_cast<unsigned char>(random_.next() | 1)};
    fill(blocks_[slot]);
  }

  std::vector<Block> blocks_;
  Random random_;
  size_t top_ = 0;
  sluice_scope scopes_[most_open];
  size_t open_ = 0;
  bool may_run_out_ = false;
  std::string wrong_;
};

}  // namespace sluice::test
