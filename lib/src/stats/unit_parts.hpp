// UnitParts: what each unit of the region served for when the locks of the heap were held, so that its pages can be
// told apart afterwards. Open it to change what resident memory is divided into.
#pragma once

#include <cstddef>
#include <cstdint>

#include "stats/snapshot.hpp"

namespace sluice::stats {

// Neither allocates nor waits; async-signal-safe.
class UnitParts {
 public:
  UnitParts() noexcept = default;
  ~UnitParts();
  UnitParts(const UnitParts&) = delete;
  UnitParts& operator=(const UnitParts&) = delete;

  // Effects: takes note of all units, a byte each on memory of its own; of none where the system has no memory.
  // Requires: all locks of the heap. Called once.
  void note() noexcept;

  // Whether they have been noted.
  explicit operator bool() const noexcept { return parts_ != nullptr; }
  size_t count() const noexcept { return count_; }

  // Effects: adds pages in memory, by their place from the first unit on, to what they serve for. Requires: noted.
  void add(ResidentFigures& figures, size_t offset, size_t bytes) const noexcept;

 private:
  uint8_t* parts_ = nullptr;  // an index of parts (unit_parts.cpp) for each unit from region::first_index() on
  size_t count_ = 0;
};

}  // namespace sluice::stats
