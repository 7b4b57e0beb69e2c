// Reachability: which sampled blocks the program can still find. Open it when a block is called leaked that is not, or
// the other way round. It runs in a copy of the process (stats/leak_check.hpp), where nothing changes meanwhile.
//
// Any aligned word that holds an address within a block counts as a pointer to it, as LeakSanitizer has it: to its
// first byte or another one, not behind its end. From roots (os/roots.hpp) the marks follow such words through blocks.
//
//   Unmarked ──▶ Reachable          a root, or a reachable block, points to it
//      │
//      └──────▶ a leader, which no other leaked block points to but those that it leads to: leaked *directly*;
//               led by it: leaked *indirectly*, since only leaked blocks point to it
//
// Of blocks that point to each other in a circle the first one leads. The heap's own memory (free blocks, caches,
// tables) is no root. What is no sampled block is one: blocks from before the profile began, frame memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/roots.hpp"
#include "profile/profile.hpp"

namespace sluice::stats {

class Reachability {
 public:
  Reachability() noexcept = default;
  ~Reachability();
  Reachability(const Reachability&) = delete;
  Reachability& operator=(const Reachability&) = delete;

  enum class Outcome : uint8_t { Done, NoMemory, NoRoots, TooLong };

  // Effects: marks all sampled blocks. Requires: no other thread runs. `until_ms`: when it gives up.
  Outcome find(const profile::Records& records, const os::ThreadMark& thread, uint64_t until_ms) noexcept;

  // The block that leads to a leaked one, itself where it is leaked directly; no_record where it is reachable.
  profile::RecordNumber leader_of(profile::RecordNumber number) const noexcept;

 private:
  struct Work;
  using RecordNumber = profile::RecordNumber;

  void note_blocks(const profile::Records& records) noexcept;
  size_t note_span(const profile::Records& records, size_t index, os::MemoryRange* own) noexcept;
  void note_guarded() noexcept;
  RecordNumber block_at(uintptr_t address) const noexcept;
  template <typename Meet>
  void scan(os::MemoryRange range, Meet meet) noexcept;
  template <typename Meet>
  void scan_readable(os::MemoryRange range, Meet meet) noexcept;
  template <typename Meet>
  void scan_block(RecordNumber number, Meet meet) noexcept;
  void mark_from_roots(os::MemoryRange range) noexcept;
  bool lead(RecordNumber leader) noexcept;
  void mark_leaked() noexcept;
  bool is_late() noexcept;

  Work* work_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace sluice::stats
