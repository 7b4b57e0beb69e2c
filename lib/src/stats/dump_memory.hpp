// DumpMemory: what one dump works on, from the snapshot to the text. Each dump has its own, so that none waits for
// another one whose reader does not come; and the text has room for all of it, so that it goes out in one write. Open
// it when a dump comes out in pieces, or not at all where memory is short.
#pragma once

#include <cstddef>

#include "stats/snapshot.hpp"

namespace sluice::stats {

// Neither allocates nor waits; async-signal-safe.
class DumpMemory {
 public:
  static constexpr size_t path_capacity = 4096;

  // Effects: maps memory. Where the system has none left, takes what the library keeps for one dump at a time; its text
  // goes out in pieces. Null members when that is in use as well.
  DumpMemory() noexcept;
  ~DumpMemory() { give_back(); }
  DumpMemory(const DumpMemory&) = delete;
  DumpMemory& operator=(const DumpMemory&) = delete;

  explicit operator bool() const noexcept { return parts_ != nullptr; }

  // Effects: as the destructor, before the end of its life.
  void give_back() noexcept;

  // Require that there is memory.
  Snapshot& snapshot() noexcept { return parts_->snapshot; }
  char* path() noexcept { return parts_->path; }  // path_capacity bytes
  char* path_beside() noexcept {
    return parts_->path_beside;
  }  // of another file in the same folder; path_capacity bytes
  char* text() noexcept { return text_; }
  size_t text_capacity() const noexcept { return text_capacity_; }

  // Effects: in the child of a fork, forgets dumps of threads that stayed behind.
  static void forget_others() noexcept;

 private:
  struct Parts {
    Snapshot snapshot;
    char path[path_capacity];
    char path_beside[path_capacity];
  };
  struct Kept;
  static Kept kept;

  Parts* parts_ = nullptr;
  char* text_ = nullptr;
  size_t text_capacity_ = 0;
};

}  // namespace sluice::stats
