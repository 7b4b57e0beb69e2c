// Records: one for each sampled block that is alive. Open it when records run out.
//
// They lie in memory of a fixed size that is mapped once, and are known by their number; 0 is none. A unit with sampled
// blocks has as many records as it has blocks, side by side (blocks.hpp), so that the block's place gives its record.
// Other blocks (large ones, guarded ones) remember the number of theirs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profile/sites.hpp"

namespace sluice::profile {

using RecordNumber = uint32_t;
inline constexpr RecordNumber no_record = 0;

// Life of a record:
//
//   Unused ──▶ Live ──▶ Ended ──▶ Unused
//          lock     free      lock
//
// Live to Ended is one compare and exchange: of two frees of one block one is the second. All else is under the
// profile's lock.
enum class RecordState : uint8_t { Unused, Live, Ended };

struct Record {
  Site* site;
  double weight;  // how many blocks it stands for
  size_t size;    // that was asked for
  uint64_t born_ns;
  uint64_t born_bytes;  // what had been allocated
  uint32_t thread;      // that allocated it
  uint32_t unit;        // that it belongs to; 0: none
  RecordNumber next;    // of unused ones, or of ended ones that wait
  std::atomic<RecordState> state;
  uint16_t generation;  // how many profiles had been written when it was born, at most latest_generation
};
inline constexpr uint16_t latest_generation = UINT16_MAX;

class Records {
 public:
  // Effects: maps room for `count` records; for less where the system refuses. False when there is no memory.
  bool map(size_t count) noexcept;

  Record& at(RecordNumber number) noexcept { return records_[number]; }
  const Record& at(RecordNumber number) const noexcept { return records_[number]; }

  // Numbers from here on have never been used.
  RecordNumber end() const noexcept { return static_cast<RecordNumber>(taken_); }

  RecordNumber number_of(const Record& record) const noexcept { return static_cast<RecordNumber>(&record - records_); }

  // Effects: so many records side by side. Returns: the first one's number; no_record when there is no room.
  RecordNumber take_run(size_t count) noexcept;

  // A record that belongs to no unit.
  RecordNumber take() noexcept;
  void give_back(RecordNumber number) noexcept;

 private:
  Record* records_ = nullptr;
  size_t count_ = 0;
  size_t taken_ = 1;  // number 0 is none
  RecordNumber unused_ = no_record;
};

}  // namespace sluice::profile
