// See hardened_reuse.hpp. Compiled into libsluice-secure.so alone.
#include "heap/hardened_reuse.hpp"

#include <utility>

#include "heap/hardened.hpp"
#include "heap/hardened_report.hpp"
#include "heap/heap.hpp"

namespace sluice::hardened {
namespace {

constexpr unsigned turned_together = 4;

// Puts a generation into its bin, and what the bin does not take into the heap.
void spill(ThreadCache* c, void** blocks, const ClassRow& row) noexcept {
  Bin& bin = c->bins[&row - class_rows.data()];
  for (unsigned i = 0; i < row.generation(); ++i) {
    void* const block = std::exchange(blocks[i], nullptr);
    if (block == nullptr) continue;
    keep_order();
    if (*static_cast<const uint64_t*>(block) != 0) [[unlikely]] {  // the link's word
      report_write_to_free(block);
    } else if (bin.room <= 0) {
      heap::free(block);
    } else {
      --bin.room;
      set_next(block, bin.head);
      bin.head = block;
    }
  }
}

}  // namespace

void turn(ThreadCache* c, Reuse& reuse, const ClassRow& row, void** blocks) noexcept {
  const unsigned size_class = static_cast<unsigned>(&row - class_rows.data());
  if (!c->lock.held_by_this_thread()) cache::tick(*c, size_class);
  // No generation yet; or a signal handler has freed in the middle of a free, which no malloc takes.
  if (blocks[0] == nullptr || blocks[row.generation() - 1] == nullptr) return;
  const unsigned ready = reuse.ready.load(std::memory_order_relaxed);
  const unsigned count = row.generation();
  if (ready + count > row.stack_capacity || c->small_limit == 0 || clear_all) return spill(c, blocks, row);
  void** const top = c->secure_part.slots + row.first_ready + ready;
  const unsigned together = count < turned_together ? count : turned_together;
  uint64_t random = cache::random_bits(*c);
  for (unsigned i = 0; i < count; i += together, random >>= 2)
    for (unsigned k = 0; k < together; ++k)
      top[i + (k ^ (random & (together - 1)))] = std::exchange(blocks[i + k], nullptr);
  reuse.ready.store(static_cast<uint8_t>(ready + count), std::memory_order_release);
}

void check_kept(const ThreadCache& c) noexcept {
  for (unsigned k = 1; k < size_class_count; ++k) {
    const ClassRow& row = class_rows[k];
    const auto check_slots = [&](unsigned first, unsigned count) {
      for (void* const* slot = c.secure_part.slots + first; count != 0; ++slot, --count)
        if (const auto* block = static_cast<const uint64_t*>(*slot);
            block != nullptr && (block[0] != 0 || !is_untouched(block, class_sizes[k], canary_of(block)))) [[unlikely]]
          report_write_to_free(block);
    };
    check_slots(row.first_queued, row.queue_mask + 1u);
    check_slots(row.first_ready, c.secure_part.reuse[k].ready.load(std::memory_order_relaxed));
  }
}

void* take_kept(ThreadCache& c, unsigned size_class) noexcept {
  Reuse& reuse = c.secure_part.reuse[size_class];
  const ClassRow& row = class_rows[size_class];
  if (const uint8_t ready = reuse.ready.load(std::memory_order_relaxed); ready != 0) {
    reuse.ready.store(static_cast<uint8_t>(ready - 1), std::memory_order_relaxed);
    return c.secure_part.slots[size_t{row.first_ready} + ready - 1];
  }
  for (unsigned i = 0; i <= row.queue_mask; ++i)
    if (void* const block = std::exchange(c.secure_part.slots[row.first_queued + i], nullptr)) return block;
  reuse.next.store(0, std::memory_order_relaxed);
  return nullptr;
}

size_t kept_blocks(const ThreadCache& c, unsigned size_class) noexcept {
  const ClassRow& row = class_rows[size_class];
  size_t count = c.secure_part.reuse[size_class].ready.load(std::memory_order_relaxed);
  for (unsigned i = 0; i <= row.queue_mask; ++i)
    if (__atomic_load_n(&c.secure_part.slots[row.first_queued + i], __ATOMIC_RELAXED) != nullptr) ++count;
  return count;
}

uint32_t kept_mark(const ThreadCache& c, unsigned size_class) noexcept {
  const Reuse& reuse = c.secure_part.reuse[size_class];
  const size_t count = kept_blocks(c, size_class);
  return count == 0 ? 0 : static_cast<uint32_t>(count << 8 | reuse.next.load(std::memory_order_relaxed));
}

}  // namespace sluice::hardened
