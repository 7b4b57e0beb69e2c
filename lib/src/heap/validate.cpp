// See validate.hpp.
#include "heap/validate.hpp"

#include <bit>

#include "heap/link.hpp"
#include "heap/own_spans.hpp"
#include "heap/slab.hpp"
#include "heap/thread_cache.hpp"
#include "heap/transfer.hpp"
#include "heap/vacant.hpp"
#include "os/memory.hpp"

namespace sluice::heap {
namespace {

constexpr unsigned most_tries = 100'000;

const char* validate_slab(const Unit* s) noexcept {
  const unsigned k = s->slab.size_class;
  if (k == 0 || k >= size_class_count) return "slab: no such class";
  if (s->units != slab::units_per_slab(k) + guard_units || s->slab.capacity != slab::blocks_per_slab(k))
    return "slab: wrong extent";
  if (s->slab.free_count > s->slab.carved || s->slab.carved > s->slab.capacity) return "slab: blocks miscounted";
  const size_t index = region::index_of(s);
  for (size_t i = 0; i < slab::units_per_slab(k); ++i) {
    if (class_bytes()[index + i] != class_byte_of(k)) return "slab: wrong class byte";
    if (s[i].slab.back != i) return "slab: unit does not lead to its slab";
  }
  unsigned bits = 0;
  const uint64_t* words = slab::free_bits(s);
  for (uint32_t i = 0; i < slab::words_of(s); ++i) {
    bits += static_cast<unsigned>(std::popcount(words[i]));
    const uint64_t beyond = s->slab.carved >= (i + 1) * 64 ? 0
                            : s->slab.carved <= i * 64     ? ~uint64_t{0}
                                                           : ~uint64_t{0} << (s->slab.carved % 64);
    if ((words[i] & beyond) != 0) return "slab: free block that was never carved";
  }
  if (bits != s->slab.free_count) return "slab: free bitmap and count differ";
  if (slab::remote_count(s) > slab::used_of(s)) return "slab: more remote frees than blocks in use";
  return vacant::validate(s, words);
}

// The next three run under all locks, which the analysis does not see.
struct Found {
  size_t free_bytes;
  size_t absent_bytes;
  bool next;  // the slab that a walk comes to next
};
const char* validate_partial(const ThreadCache& c, unsigned k, Found* found) noexcept SLUICE_UNCHECKED_LOCKS {
  if (c.partial[k] != unit_index_none && c.orphan.load(std::memory_order_relaxed) && !c.noted[k])
    return "cache: slabs that its thread left are not noted";
  uint32_t prev = c.partial[k] != unit_index_none ? region::unit_at(c.partial[k])->slab.prev : unit_index_none;
  const uint32_t last = prev;
  for (uint32_t i = c.partial[k]; i != unit_index_none; i = region::unit_at(i)->slab.next) {
    const Unit* s = region::unit_at(i);
    if (s->use() != UnitState::Slab || s->slab.size_class != k) return "cache: wrong slab in a partial list";
    if (s->owner.load(std::memory_order_relaxed) != &c) return "cache: slab of another owner in a partial list";
    if (s->slab.free_count == 0 && s->slab.carved == s->slab.capacity) return "cache: full slab in a partial list";
    if (s->slab.prev != prev) return "cache: partial list is damaged";
    prev = i;
    found->free_bytes += s->slab.free_count * size_t{class_sizes[k]};
    found->absent_bytes += vacant::count_absent(s);
    found->next = found->next || (c.vacancy.next == i && c.vacancy.walked_class == k);
  }
  return prev == last ? nullptr : "cache: partial list has another end";
}

const char* validate_held(const ThreadCache& c, unsigned k) noexcept SLUICE_UNCHECKED_LOCKS {
  const uint32_t held = cache::held_blocks(c, k);
  uint32_t length = 0;
  for (void* head : {c.bins[k].head, c.spare[k]}) {
    for (void* block = head; block != nullptr; block = next_of(block)) {
      if (unit_index_of(block) >= region::limit() || class_bytes()[unit_index_of(block)] != class_byte_of(k))
        return "cache: block of another class";
      if (++length > held) return "cache: list is too long";
    }
  }
  for (uint32_t i = 0; i < c.scattered_count.load(std::memory_order_acquire); ++i)
    if (class_bytes()[unit_index_of(c.scattered[i])] == class_byte_of(k)) ++length;
  if (length != held) return "cache: list is too short";
  return c.bins[k].cap < 0 || c.bins[k].cap > c.uses[k].earned ? "cache: a bin of the wrong size" : nullptr;
}

const char* validate_cache(const ThreadCache& c) noexcept SLUICE_UNCHECKED_LOCKS {
  // The lists of a cache may be looked at on its own thread, or when it has none.
  const bool is_own = &c == thread_cache || c.orphan.load(std::memory_order_relaxed);
  const bool still = c.is_common || (c.attached && !c.from_fork && is_own);
  Found found{};
  for (unsigned k = 1; k < size_class_count; ++k) {
    if (const char* wrong = validate_partial(c, k, &found)) return wrong;
    if (!still) continue;
    if (const char* wrong = validate_held(c, k)) return wrong;
  }
  if (found.free_bytes != c.vacancy.free_bytes) return "cache: free bytes miscounted";
  if (found.absent_bytes != c.vacancy.absent_bytes) return "cache: absent pages miscounted";
  if (c.vacancy.walk != Walk::None && c.vacancy.next != unit_index_none && !found.next)
    return "cache: a walk goes on where no slab is";
  if (const char* const wrong = still ? own_spans::validate(c) : nullptr) return wrong;
  if (c.arena != nullptr && still) return cache::arena_hooks.load(std::memory_order_acquire)->validate(c);
  return nullptr;
}

const char* validate_locked() noexcept {
  if (const char* wrong = region::validate()) return wrong;
  size_t free_units = 0;
  for (size_t i = region::first_span(); i < region::limit();) {
    const Unit* unit = region::unit_at(i);
    switch (unit->use()) {
      case UnitState::Slab:
        if (cache::is_lost(unit->owner.load(std::memory_order_relaxed))) break;
        if (const char* wrong = validate_slab(unit)) return wrong;
        break;
      case UnitState::Large:
      case UnitState::Meta:
      case UnitState::Purging:
      case UnitState::Arena:
      case UnitState::Frame:
      case UnitState::Guarded:
      case UnitState::Sampled:
      case UnitState::Zero:
      case UnitState::Retained:
      case UnitState::Gap:
      case UnitState::Abandoned:
        break;
      case UnitState::FreeClean:
      case UnitState::FreeDirty:
      case UnitState::FreeRecent:
      case UnitState::Extent:
        free_units += unit->units;
        break;
      case UnitState::None:
      case UnitState::LargeTail:
        return "region: no span begins where one should";
    }
    if (unit->units == 0) return "region: empty span";
    i += unit->units;
    if (i > region::limit()) return "region: span beyond the end";
  }
  // The child of a fork may have given free spans up that the walk does not come to.
  const region::Figures figures = region::figures();
  if (region::first_span() == region::first_index() &&
      free_units * unit_size != figures.free_clean_bytes + figures.free_dirty_bytes)
    return "region: a free span is in no list, or is none";
  for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
    if (const char* wrong = validate_cache(*c)) return wrong;
  for (unsigned k = 1; k < size_class_count; ++k)
    if (const char* wrong = cache::transfer::validate(k)) return wrong;
  return nullptr;
}

}  // namespace

Validation validate() noexcept {
  if (region_base == nullptr) return {Validation::Well, nullptr};
  // Not as for a fork: a signal handler that interrupts the walk must find the locks taken, and change nothing.
  for (unsigned tries = 0; !cache::try_lock_all(); ++tries) {
    if (tries == most_tries) return {Validation::DidNotLook, "the heap was not looked at: a lock is held"};
    os::yield();
  }
  const char* const wrong = validate_locked();
  cache::unlock_tried();
  return {wrong == nullptr ? Validation::Well : Validation::Wrong, wrong};
}

}  // namespace sluice::heap
