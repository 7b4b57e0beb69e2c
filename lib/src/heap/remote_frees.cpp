// See remote_frees.hpp.
#include "heap/remote_frees.hpp"

#include <bit>

#include "heap/announce.hpp"
#include "pages/region.hpp"

namespace sluice::slab {

RemoteFrees::~RemoteFrees() {
  for (; gathered_ != 0; gathered_ &= static_cast<uint16_t>(gathered_ - 1))
    (void)publish(blocks_[std::countr_zero(gathered_)]);
  for (; freed_ != 0; freed_ &= static_cast<uint16_t>(freed_ - 1)) {
    const Freed& freed = slabs_[std::countr_zero(freed_)];
    announce(freed.slab, freed.units);
  }
}

Run RemoteFrees::put(Unit* s, void* block) noexcept {
  return walk(s, block,
              [this, s](size_t word, uint64_t bits) { return gather(s, static_cast<uint32_t>(word), bits) ? 0u : 1u; });
}

// Returns: whether none of the blocks is seen to be freed twice. Else the list that they come from may be a circle.
bool RemoteFrees::gather(Unit* s, uint32_t word, uint64_t bits) noexcept {
  const auto place = static_cast<unsigned>((region::index_of(s) + word) % places);
  Blocks& entry = blocks_[place];
  bool once = true;
  if ((gathered_ >> place & 1) != 0) {
    const bool same = entry.slab == s && entry.word == word;
    if (same && (entry.bits & bits) == 0) {
      entry.bits |= bits;
      return true;
    }
    once = publish(entry) && !same;
  }
  gathered_ |= static_cast<uint16_t>(1u << place);
  entry = {s, bits, s->units, word};
  return once;
}

// Nobody keeps the slab from then on. Returns: whether no block was freed before.
bool RemoteFrees::publish(const Blocks& blocks) noexcept {
  const bool once = put_remote_word(blocks.slab, blocks.word, blocks.bits);
  const auto place = static_cast<unsigned>(region::index_of(blocks.slab) % places);
  Freed& freed = slabs_[place];
  if ((freed_ >> place & 1) != 0) {
    if (freed.slab == blocks.slab) return once;
    announce(freed.slab, freed.units);
  }
  freed_ |= static_cast<uint16_t>(1u << place);
  freed = {blocks.slab, blocks.units};
  return once;
}

}  // namespace sluice::slab
