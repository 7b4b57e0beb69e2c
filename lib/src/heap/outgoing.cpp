// See outgoing.hpp.
#include "heap/outgoing.hpp"

#include <bit>

#include "base/check.hpp"
#include "heap/announce.hpp"
#include "heap/link.hpp"
#include "pages/region.hpp"

namespace sluice::outgoing {
namespace {

constexpr uint32_t most_bytes = 32 * 1024;  // that wait; where more come they are sent
constexpr size_t largest = 2048;            // bytes; blocks beyond that are few, and go at once
constexpr unsigned hash_bits = 6;
static_assert(outgoing_capacity == 1u << hash_bits && outgoing_capacity <= 64);

unsigned entry_of(uint32_t slab, size_t word) noexcept {
  return (slab * 0x9e3779b1u + static_cast<uint32_t>(word) * 0x85ebca6bu) >> (32 - hash_bits);
}

uint32_t send_at_once(Unit* s, size_t word, uint64_t bits) noexcept {
  const uint32_t units = s->units;  // it may be gone once its last blocks have been sent
  const uint32_t twice = slab::set_remote(s, word, bits);
  slab::announce(s, units);
  return twice;
}

// Sends what waits for a word, whose place is needed.
__attribute__((noinline)) void send_word(ThreadCache& c, const OutgoingWord& place) noexcept SLUICE_REQUIRES(c.lock) {
  Unit* const s = region::unit_at(place.slab);
  c.outgoing.bytes -= place.count * class_sizes[s->slab.size_class];
  (void)send_at_once(s, place.word, place.bits);
}

// Slabs of other threads that blocks were freed into, so that each is queued on its owner once for a batch.
class Announcements {
 public:
  // Requires: the slab holds a block of the caller's still.
  void add(Unit* s) noexcept {
    const auto place = static_cast<unsigned>(region::index_of(s) % count);
    Entry& entry = entries_[place];
    if ((taken_ >> place & 1) != 0) {
      if (entry.slab == s) return;
      slab::announce(entry.slab, entry.units);
    }
    taken_ |= 1u << place;
    entry = {s, s->units};
  }
  ~Announcements() {
    for (; taken_ != 0; taken_ &= taken_ - 1) {
      const Entry& entry = entries_[std::countr_zero(taken_)];
      slab::announce(entry.slab, entry.units);
    }
  }
  // Most lists need no entry: each is written when it is taken.
  Announcements() noexcept {}  // NOLINT(modernize-use-equals-default)
  Announcements(const Announcements&) = delete;
  Announcements& operator=(const Announcements&) = delete;

 private:
  static constexpr unsigned count = 32;
  struct Entry {
    Unit* slab;
    uint32_t units;
  };
  uint32_t taken_ = 0;  // a bit for each entry
  Entry entries_[count];
};

}  // namespace

uint32_t add(ThreadCache& c, Unit* s, size_t word, uint64_t bits, uint32_t count) noexcept {
  if (!gathers_remote_frees) return send_at_once(s, word, bits);
  const auto slab = static_cast<uint32_t>(region::index_of(s));
  const unsigned entry = entry_of(slab, word);
  const uint64_t used = uint64_t{1} << entry;
  OutgoingWord& place = c.outgoing.words[entry];
  if ((c.outgoing.used & used) != 0 && (place.slab != slab || place.word != word)) {
    send_word(c, place);
    c.outgoing.used &= ~used;
  }
  if ((c.outgoing.used & used) == 0) place = {0, slab, static_cast<uint16_t>(word), 0};
  c.outgoing.used |= used;
  const uint64_t twice = place.bits & bits;
  if (twice != 0) [[unlikely]] {
    bits ^= twice;
    count -= slab::report_double_frees(s, word, twice);
  }
  place.bits |= bits;
  place.count = static_cast<uint16_t>(place.count + count);
  c.outgoing.bytes += count * class_sizes[s->slab.size_class];
  if (c.outgoing.bytes > most_bytes) send(c);
  return twice == 0 ? 0 : static_cast<uint32_t>(std::popcount(twice));
}

slab::Run take(ThreadCache& c, Unit* s, void* block) noexcept {
  if (gathers_remote_frees && class_sizes[s->slab.size_class] <= largest) return slab::walk_remote(c, s, block, add);
  const uint32_t units = s->units;
  const slab::Run run = slab::put_remote(s, block);
  slab::announce(s, units);
  return run;
}

void send(ThreadCache& c) noexcept {
  Announcements announcements;
  for (uint64_t left = c.outgoing.used; left != 0; left &= left - 1) {
    const OutgoingWord& place = c.outgoing.words[std::countr_zero(left)];
    Unit* const s = region::unit_at(place.slab);
    announcements.add(s);
    (void)slab::set_remote(s, place.word, place.bits);
  }
  forget(c);
}

void forget(ThreadCache& c) noexcept {
  c.outgoing.used = 0;
  c.outgoing.bytes = 0;
}

uint32_t count(const ThreadCache& c, unsigned size_class) noexcept SLUICE_UNCHECKED_LOCKS {
  uint32_t blocks = 0;
  for (uint64_t left = c.outgoing.used; left != 0; left &= left - 1) {
    const OutgoingWord& place = c.outgoing.words[std::countr_zero(left)];
    if (class_bytes()[place.slab] == class_byte_of(size_class)) blocks += place.count;
  }
  return blocks;
}

}  // namespace sluice::outgoing
