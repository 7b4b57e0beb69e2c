// Frees into the slabs of other threads, gathered. Open it for what many blocks of many slabs cost when they are
// flushed.
#pragma once

#include <cstdint>

#include "base/layout.hpp"
#include "heap/slab.hpp"

namespace sluice::slab {

// While it lives it gathers blocks by word of the remote bitmaps, in whatever order they come: a thread that takes what
// several others send frees a block of this slab and a block of that. At its end, or when it has no room, they are
// freed for their owners to see: with one atomic instruction for each word, and one for each slab. Its thread keeps the
// blocks until then, so that their slabs stay.
class RemoteFrees {
 public:
  // Written when they are taken: most flushes need none.
  RemoteFrees() noexcept {}  // NOLINT(modernize-use-equals-default)
  ~RemoteFrees();
  RemoteFrees(const RemoteFrees&) = delete;
  RemoteFrees& operator=(const RemoteFrees&) = delete;

  // Effects: as put_remote and announce, at the latest when this ends.
  Run put(Unit* s, void* block) noexcept;

 private:
  static constexpr unsigned places = 16;
  struct Blocks {  // of one word
    Unit* slab;
    uint64_t bits;
    uint32_t units;
    uint32_t word;
  };
  struct Freed {  // a slab with blocks that its owner is to be told of
    Unit* slab;
    uint32_t units;
  };

  bool gather(Unit* s, uint32_t word, uint64_t bits) noexcept;
  bool publish(const Blocks& blocks) noexcept;

  uint16_t gathered_ = 0;  // a bit for each entry that is taken
  uint16_t freed_ = 0;
  Blocks blocks_[places];
  Freed slabs_[places];
};

}  // namespace sluice::slab
