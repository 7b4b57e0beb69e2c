// See slab.hpp.
#include "heap/slab.hpp"

#include <bit>
#include <utility>

#include "base/check.hpp"
#include "base/options.hpp"
#include "heap/block_state.hpp"
#include "heap/orphan_index.hpp"
#include "heap/slab_order.hpp"
#include "heap/vacant.hpp"
#include "os/memory.hpp"
#include "pages/spans.hpp"

namespace sluice::slab {
namespace {

constexpr const char* double_free = "double free";
constexpr const char* no_block_begins = "invalid free, no block begins";
// Units of the slabs of a thread that is worth huge pages: what its slabs leave untouched is little beside so much…
constexpr size_t worth_huge_pages = (size_t{32} << 20) / unit_size;
constexpr size_t longest_in_huge_pages = 4096;  // …and blocks, in bytes, of which each page has one at least

static_assert(blocks_per_slab(1) <= UINT16_MAX);
static_assert(blocks_per_slab(1) <= 64 * bitmap_words);

AtomicField<uint64_t>* remote_words(Unit* s) noexcept {
  return s->slab.capacity <= 64 ? &s->slab.remote_word : region::remote_bitmap_at(region::index_of(s));
}

// Reports blocks of a word of the slab's bitmaps that were freed before. Returns: how many.
__attribute__((noinline, cold)) uint32_t report_double_frees(const Unit* s, size_t word, uint64_t bits) noexcept {
  const auto count = static_cast<uint32_t>(std::popcount(bits));
  for (; bits != 0; bits &= bits - 1)
    report_corruption(double_free, block_at(s, 64 * word + static_cast<unsigned>(std::countr_zero(bits))));
  return count;
}

// Blocks of the class in all slabs of the owner; its thread may be reading `used`.
void add_used(ThreadCache& owner, unsigned size_class, uint32_t count) noexcept SLUICE_REQUIRES(owner.lock) {
  AtomicField<uint32_t>& used = owner.uses[size_class].used;
  used.store(used.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
}

uint32_t index32(const Unit* s) noexcept {
  return static_cast<uint32_t>(region::index_of(s));
}

void link_partial(ThreadCache& owner, Unit* s) noexcept SLUICE_REQUIRES(owner.lock) {
  uint32_t& head = owner.partial[s->slab.size_class];
  s->slab.prev = index32(s);
  s->slab.next = head;
  if (head != unit_index_none) std::swap(s->slab.prev, region::unit_at(head)->slab.prev);
  head = index32(s);
  if (owner.orphan.load(std::memory_order_relaxed)) orphan_index::note(owner, s->slab.size_class);
}

void unlink_partial(ThreadCache& owner, Unit* s) noexcept SLUICE_REQUIRES(owner.lock) {
  if (owner.vacancy.next == index32(s)) owner.vacancy.next = s->slab.next;
  uint32_t& head = owner.partial[s->slab.size_class];
  const bool is_last = s->slab.next == unit_index_none;
  (head == index32(s) ? head : region::unit_at(s->slab.prev)->slab.next) = s->slab.next;
  if (head != unit_index_none) region::unit_at(is_last ? head : s->slab.next)->slab.prev = s->slab.prev;
  s->slab.at_end = false;
}

// Puts a slab that is in no list at the end, where refills come last.
void link_last(ThreadCache& owner, Unit* s) noexcept SLUICE_REQUIRES(owner.lock) {
  uint32_t& head = owner.partial[s->slab.size_class];
  s->slab.at_end = true;
  s->slab.prev = index32(s);
  s->slab.next = unit_index_none;
  if (head == unit_index_none) {
    head = index32(s);
    return;
  }
  std::swap(s->slab.prev, region::unit_at(head)->slab.prev);
  region::unit_at(s->slab.prev)->slab.next = index32(s);
}

bool is_partial(const Unit* s) noexcept {
  return s->slab.free_count != 0 || s->slab.carved < s->slab.capacity;
}

void set_class_bytes(const Unit* s, uint8_t byte) noexcept {
  __builtin_memset(class_bytes() + region::index_of(s), byte, s->units - guard_units);
}

void push_pending(ThreadCache& owner, Unit* s, uint32_t units) noexcept {
  uint32_t head = owner.pending.load(std::memory_order_relaxed);
  do {
    s->pending_next.store(head, std::memory_order_relaxed);
    // Release: pairs with the acquiring exchange in collect_pending. Sequentially consistent: pairs with `orphan`, so
    // that either the ending thread sees this slab or the caller sees that the thread has ended.
  } while (
      !owner.pending.compare_exchange_weak(head, index32(s), std::memory_order_seq_cst, std::memory_order_relaxed));
  owner.pending_units.fetch_add(units, std::memory_order_relaxed);
}

// A slab that holds nothing goes, but the last one of its class stays if it is small and its owner lives: the next
// block may be wanted soon.
void destroy_if_spare(ThreadCache& owner, Unit* s) noexcept SLUICE_REQUIRES(owner.lock) {
  const bool last = s->slab.prev == index32(s);  // there is no other
  if (last && s->units == 1 + guard_units && !owner.orphan.load(std::memory_order_relaxed)) return;
  unlink_partial(owner, s);
  destroy(s);
}

// The slab was full, or at the end, or is empty now.
__attribute__((noinline)) void settle(ThreadCache& owner, Unit* s, bool was_partial) noexcept
    SLUICE_REQUIRES(owner.lock) {
  if (s->slab.at_end) {
    unlink_partial(owner, s);
    was_partial = false;
  }
  if (!was_partial) link_partial(owner, s);
  if (used_of(s) == 0) destroy_if_spare(owner, s);
}

// As take_blocks, where pages are absent: blocks on pages in memory first, then new ones, then a page's worth of
// others.
__attribute__((noinline)) BlockList take_around_absent(ThreadCache& owner, Unit* s, uint32_t most) noexcept
    SLUICE_REQUIRES(owner.lock) {
  uint64_t present[bitmap_words];
  uint32_t left = vacant::find_present(s, free_words(s), present);
  BlockList blocks;
  if (left != 0) {
    blocks = pick(s, left < most ? left : most, [&present](size_t word) { return present[word]; });
    left -= blocks.count;
    vacant::note_taken(owner, s, blocks.count);
  } else if (s->slab.carved < s->slab.capacity) {
    blocks = carve(s, most);
  } else {
    const size_t in_a_page = os::page_size() / class_sizes[s->slab.size_class];
    if (most > in_a_page) most = in_a_page != 0 ? static_cast<uint32_t>(in_a_page) : 1;
    blocks = pick(s, most);
    vacant::note_taken(owner, s, blocks.count);
    vacant::bring_back(owner, s, blocks.first);
    left = vacant::find_present(s, free_words(s), present);
  }
  const bool ends = left == 0 && s->slab.carved == s->slab.capacity;
  if (is_partial(s) && ends == s->slab.at_end) return blocks;
  unlink_partial(owner, s);
  if (is_partial(s) && ends)
    link_last(owner, s);
  else if (is_partial(s))
    link_partial(owner, s);
  return blocks;
}

// Accounts in the slab for blocks whose free bits have been set.
inline void count_free(ThreadCache& owner, Unit* s, uint32_t count) noexcept SLUICE_REQUIRES(owner.lock) {
  const uint32_t before = s->slab.free_count;
  const uint32_t now = before + count;
  const uint32_t carved = s->slab.carved;
  s->slab.free_count = static_cast<uint16_t>(now);
  s->slab.may_be_vacant = true;
  const bool was_full = before == 0 && carved == s->slab.capacity;
  if (was_full || now == carved || s->slab.at_end) [[unlikely]]
    settle(owner, s, !was_full);
}

// Accounts in the cache for blocks of a class that were freed. It may come after their slab is gone.
inline void count_freed(ThreadCache& owner, unsigned size_class, uint32_t count) noexcept SLUICE_REQUIRES(owner.lock) {
  add_used(owner, size_class, 0 - count);
  vacant::note_freed(owner, size_t{count} * class_sizes[size_class]);
}

}  // namespace

Unit* create(ThreadCache& owner, unsigned size_class) noexcept {
  const size_t units = units_per_slab(size_class);
  const bool huge = owner.vacancy.slab_units >= worth_huge_pages && class_sizes[size_class] <= longest_in_huge_pages;
  bool clean;
  const size_t index = spans::take(units, UnitState::Slab, huge, &clean);
  if (index == unit_index_none) return nullptr;
  Unit* s = region::unit_at(index);
  for (size_t i = 0; i < units; ++i) {
    s[i].slab.back = static_cast<uint32_t>(i);
    s[i].slab.absent = 0;
  }
  s->slab.has_absent = s->slab.at_end = s->slab.keeps_vacant = s->slab.may_be_vacant = false;
  s->slab.has_pages = !clean;
  s->slab.free_word = 0;
  s->slab.free_count = s->slab.carved = 0;
  s->slab.capacity = static_cast<uint16_t>(blocks_per_slab(size_class));
  s->slab.size_class = static_cast<uint8_t>(size_class);
  s->owner.store(&owner, std::memory_order_release);  // pairs with queue_on_owner and collect_pending
  set_class_bytes(s, class_byte_of(size_class));
  link_partial(owner, s);
  ++owner.slab_count;
  owner.vacancy.slab_units += s->units;
  owner.vacancy.tail_bytes += tail_bytes(s);
  return s;
}

void drop_rest(Unit* s, size_t blocks) noexcept {
  static constinit std::atomic<bool> is_refused{false};  // memory is locked, or a sandbox forbids it
  if (!vacant::gives_back || region::keeps_all() || options.huge_pages || is_refused.load(std::memory_order_relaxed) ||
      region::lies_in_huge_page(region::index_of(s)))
    return;
  const size_t page = os::page_size();
  const size_t kept = (blocks * class_sizes[s->slab.size_class] + page - 1) / page * page;
  const size_t all = (s->units - guard_units) * unit_size;
  if (kept >= all) return;
  s->slab.has_pages = !os::drop(start_of(s) + kept, all - kept);
  if (s->slab.has_pages) is_refused.store(true, std::memory_order_relaxed);
}

void destroy(Unit* s) noexcept {
  ThreadCache& owner = owner_of(s);
  owner.lock.expect_held();
  --owner.slab_count;
  owner.uses[s->slab.size_class].carved -= s->slab.carved;
  vacant::note_gone(owner, s);
  if (s->slab.has_absent) [[unlikely]]
    vacant::note_wasted(owner, s);
  s->owner.store(nullptr, std::memory_order_release);
  __builtin_memset(free_words(s), 0, (size_t{s->slab.carved} + 63) / 64 * sizeof(uint64_t));
  set_class_bytes(s, class_byte_none);
  if (checks_blocks) hardened::retire(start_of(s), states_of(s), s->slab.carved, s->slab.size_class);
  spans::give_back(region::index_of(s));
}

namespace {

BlockList take_any(ThreadCache& owner, Unit* s, uint32_t most) noexcept SLUICE_REQUIRES(owner.lock) {
  if (randomizes_order && most > most_at_once) most = most_at_once;
  const bool carves = s->slab.free_count == 0;
  const BlockList blocks = carves ? carve(s, most) : randomizes_order ? pick_at_random(s, most) : pick(s, most);
  if (!carves) vacant::note_taken(owner, s, blocks.count);
  if (!is_partial(s)) unlink_partial(owner, s);
  return blocks;
}

}  // namespace

BlockList take_blocks(Unit* s, uint32_t most) noexcept {
  ThreadCache& owner = owner_of(s);
  owner.lock.expect_held();
  const uint32_t carved = s->slab.carved;
  const BlockList blocks = s->slab.has_absent ? take_around_absent(owner, s, most) : take_any(owner, s, most);
  add_used(owner, s->slab.size_class, blocks.count);
  owner.uses[s->slab.size_class].carved += s->slab.carved - carved;
  return blocks;
}

// Block by block: most lie in another slab than the one before. What is counted for a slab is counted when a block lies
// elsewhere, what is counted for a class at the end.
OwnRuns put_list(ThreadCache& c, void* block) noexcept {
  int32_t runs = 0;
  unsigned size_class = 0;
  uint32_t of_class = 0;
  Unit* s = nullptr;
  uintptr_t start = 0;
  size_t extent = 0;  // of the slab, in bytes
  uint32_t of_slab = 0;
  uint64_t reciprocal = 0;
  uint64_t* words = nullptr;
  const auto leave_slab = [&]() SLUICE_UNCHECKED_LOCKS {
    if (of_slab != 0) count_free(c, s, of_slab);
    of_class += of_slab;
    of_slab = 0;
  };
  const auto leave_class = [&]() SLUICE_UNCHECKED_LOCKS {
    if (of_class == 0) return;
    count_freed(c, size_class, of_class);
    c.uses[size_class].unseen = 0;  // fewer may be left than these
    of_class = 0;
  };
  while (block != nullptr) {
    size_t offset = reinterpret_cast<uintptr_t>(block) - start;
    if (offset >= extent) {
      leave_slab();
      s = of(block);
      if (s->owner.load(std::memory_order_relaxed) != &c) break;
      if (s->slab.size_class != size_class) [[unlikely]] {
        leave_class();
        size_class = s->slab.size_class;
        reciprocal = reciprocals[size_class];
      }
      start = reinterpret_cast<uintptr_t>(start_of(s));
      extent = size_t{s->units} << unit_shift;
      offset = reinterpret_cast<uintptr_t>(block) - start;
      words = free_words(s);
      ++runs;
    }
    const BlockNumber at = number_at(offset, reciprocal);
    void* const previous = block;
    block = next_of(block);
    const uint64_t bit = at.begins ? uint64_t{1} << at.number % 64 : 0;
    uint64_t& word = words[at.number / 64];
    if ((word & bit) != 0 || bit == 0) [[unlikely]] {
      report_corruption(bit == 0 ? no_block_begins : double_free, previous);
      if (bit == 0) continue;
      block = nullptr;  // a list of blocks that were freed into twice has a circle
      break;
    }
    word |= bit;
    ++of_slab;
  }
  leave_slab();
  leave_class();
  return {block, runs};
}

// Every step is done for all blocks before the next, so that the processor fetches what they need side by side.
uint32_t put_scattered(ThreadCache& owner, void** blocks, uint32_t count) noexcept {
  struct Bit {
    Unit* slab;
    uint64_t* word;
    uint64_t bit;  // 0 where no block begins
  };
  Bit bits[scattered_capacity];
  for (uint32_t i = 0; i < count; ++i) {
    Unit* const s = of(blocks[i]);
    const BlockNumber at = number_at(offset_of(blocks[i]), reciprocals[s->slab.size_class]);
    uint64_t* const word = free_words(s) + at.number / 64;
    __builtin_prefetch(word, 1);
    bits[i] = {s, word, at.begins ? uint64_t{1} << at.number % 64 : 0};
  }
  uint32_t others = 0;
  size_t bytes = 0;  // may be taken off before they are added, if a slab goes
  for (uint32_t i = 0; i < count; ++i) {
    const auto [s, word, bit] = bits[i];
    if (s->owner.load(std::memory_order_relaxed) != &owner) {
      blocks[others++] = blocks[i];
      continue;
    }
    const uint64_t free = *word;
    if ((free & bit) != 0 || bit == 0) [[unlikely]] {
      report_corruption(bit == 0 ? no_block_begins : double_free, blocks[i]);
      continue;
    }
    check(number_of(s, blocks[i]) < s->slab.carved, "free of a block that was never handed out", blocks[i]);
    *word = free | bit;
    const unsigned size_class = s->slab.size_class;
    bytes += class_sizes[size_class];
    add_used(owner, size_class, 0u - 1);
    count_free(owner, s, 1);
  }
  vacant::note_freed(owner, bytes);
  return others;
}

namespace {

uint32_t set_remote(Unit* s, size_t word, uint64_t bits) noexcept {
  // Release: the program's last use of the blocks is seen by collect_pending. Of blocks that the owner has taken in
  // since, that finds out.
  const uint64_t twice = remote_words(s)[word].fetch_or(bits, std::memory_order_release) & bits;
  return twice == 0 ? 0 : report_double_frees(s, word, twice);
}

}  // namespace

Run put_remote(Unit* s, void* block) noexcept {
  return walk(s, block, [s](size_t word, uint64_t bits) { return set_remote(s, word, bits); });
}

bool put_remote_word(Unit* s, uint32_t word, uint64_t bits) noexcept {
  return set_remote(s, word, bits) == 0;
}

ThreadCache* queue_on_owner(Unit* s, uint32_t units) noexcept {
  for (;;) {
    if (ThreadCache* owner = s->owner.load(std::memory_order_acquire)) {
      push_pending(*owner, s, units);
      return owner;
    }
    // Who freed into a new slab here and found it queued relies on us: look again after letting go of the flag.
    (void)s->queued.exchange(false, std::memory_order_acq_rel);
    if (s->owner.load(std::memory_order_acquire) == nullptr || s->queued.exchange(true, std::memory_order_acq_rel))
      return nullptr;
  }
}

uint32_t remote_count(const Unit* s) noexcept {
  const AtomicField<uint64_t>* words = remote_words(const_cast<Unit*>(s));
  uint32_t count = 0;
  for (uint32_t i = 0; i < words_of(s); ++i)
    if (const uint64_t bits = words[i].load(std::memory_order_relaxed); bits != 0)
      count += static_cast<uint32_t>(std::popcount(bits));
  return count;
}

const uint64_t* free_bits(const Unit* s) noexcept {
  return free_words(const_cast<Unit*>(s));
}

void collect_pending(ThreadCache& owner) noexcept {
  // Acquire: pairs with push_pending.
  uint32_t index = owner.pending.exchange(unit_index_none, std::memory_order_seq_cst);
  if (index != unit_index_none) owner.pending_units.store(0, std::memory_order_relaxed);
  while (index != unit_index_none) {
    Unit* s = region::unit_at(index);
    index = s->pending_next.load(std::memory_order_relaxed);
    if (s->owner.load(std::memory_order_acquire) != &owner) {  // it changed hands, or is gone
      ThreadCache* const other = queue_on_owner(s, 1);
      // Nobody collects for an orphan, and this is no place to take its lock.
      if (other != nullptr && other->orphan.load(std::memory_order_seq_cst))
        orphan_index::note(*other, orphan_index::to_look_at);
      continue;
    }
    (void)s->queued.exchange(false, std::memory_order_acq_rel);  // from here on it may be queued again; see announce()
    uint64_t* const free = free_words(s);
    AtomicField<uint64_t>* const remote = remote_words(s);
    uint32_t count = 0;
    const uint32_t words = (uint32_t{s->slab.carved} + 63) / 64;
    for (uint32_t i = 0; i < words; ++i) {
      if (remote[i].load(std::memory_order_relaxed) == 0) continue;
      const uint64_t bits = remote[i].exchange(0, std::memory_order_acquire);  // pairs with put_remote
      const uint64_t twice = free[i] & bits;
      free[i] |= bits;
      count += static_cast<uint32_t>(std::popcount(bits));
      if (twice != 0) [[unlikely]]
        count -= report_double_frees(s, i, twice);
    }
    if (count == 0) continue;
    count_freed(owner, s->slab.size_class, count);
    count_free(owner, s, count);
  }
}

void place(ThreadCache& owner, Unit* s) noexcept {
  uint64_t present[bitmap_words];
  const bool ends =
      s->slab.has_absent && s->slab.carved == s->slab.capacity && vacant::find_present(s, free_words(s), present) == 0;
  const bool is_fuller = used_of(s) > s->slab.capacity / 2u && owner.partial[s->slab.size_class] != index32(s);
  if (ends == s->slab.at_end && (ends || !is_fuller)) return;
  unlink_partial(owner, s);
  if (ends)
    link_last(owner, s);
  else
    link_partial(owner, s);
}

void destroy_empty(ThreadCache& owner, unsigned size_class) noexcept {
  for (uint32_t i = owner.partial[size_class]; i != unit_index_none;) {
    Unit* s = region::unit_at(i);
    i = s->slab.next;
    if (used_of(s) != 0) continue;
    unlink_partial(owner, s);
    destroy(s);
  }
}

void destroy_empty(ThreadCache& owner) noexcept {
  for (unsigned k = 1; k < size_class_count; ++k)
    destroy_empty(owner, k);
}

void abandon(ThreadCache& from, ThreadCache& to) noexcept {
  // Slabs of others that were queued here may be queued again where they belong.
  uint32_t queued = from.pending.exchange(unit_index_none, std::memory_order_relaxed);
  for (from.pending_units = 0; queued != unit_index_none;) {
    Unit* const s = region::unit_at(queued);
    queued = s->pending_next.load(std::memory_order_relaxed);
    s->queued.store(false, std::memory_order_relaxed);
  }
  // Not from span to span: their ends may be wrong.
  for (size_t i = region::first_index(); i < region::limit(); i = region::next_unit(i))
    if (region::unit_at(i)->owner.load(std::memory_order_relaxed) == &from)
      region::unit_at(i)->owner.store(&to, std::memory_order_relaxed);
}

void adopt_unowned(ThreadCache& to) noexcept {
  for (size_t i = region::first_span(); i < region::limit() && region::unit_at(i)->units != 0;
       i += region::unit_at(i)->units) {
    Unit* const s = region::unit_at(i);
    if (s->use() == UnitState::Slab && s->owner.load(std::memory_order_relaxed) == nullptr)
      s->owner.store(&to, std::memory_order_relaxed);
  }
}

void change_owner(Unit* s, ThreadCache& to) noexcept {
  ThreadCache& from = owner_of(s);
  from.lock.expect_held();
  const unsigned k = s->slab.size_class;
  unlink_partial(from, s);
  --from.slab_count;
  add_used(from, k, 0u - used_of(s));
  from.uses[k].carved -= s->slab.carved;
  vacant::note_gone(from, s);
  s->owner.store(&to, std::memory_order_release);
  link_partial(to, s);
  ++to.slab_count;
  add_used(to, k, used_of(s));
  to.uses[k].carved += s->slab.carved;
  vacant::note_come(to, s);
}

}  // namespace sluice::slab
