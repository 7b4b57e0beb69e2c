// Sites: what the samples of one stack, one size and one thread's name add up to, and the table of them. Open it to add
// a figure to the profile, or when sites are missing.
//
// The table lies in memory of a fixed size that is mapped once. Sites stay until all are removed; when it is full,
// samples of new sites are dropped, and counted. Everything here is under the profile's lock, but what find_or_add
// writes before a site is in the table: frames, size and name never change.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/process.hpp"

namespace sluice::profile {

inline constexpr unsigned most_frames = 128;

// Estimates: of each sample as many as it stands for.
struct Tally {
  double objects, bytes;
};

struct Site {
  Site* next_in_bucket;
  Site* next;  // all sites, newest first
  uint64_t hash;
  uint64_t bytes;  // of its blocks, rounded up
  uint32_t frame_count;
  bool complete;  // the outermost call is among the frames
  char thread[os::thread_name_capacity];
  Tally allocated, live;
  Tally at_peak;       // what was live at the peak that seen_peak numbers; later peaks: what is live now
  uint64_t seen_peak;  // the latest peak when `live` last changed
  double freed_elsewhere, short_lived;  // objects
  double lifetime_ms;

  const uintptr_t* frames() const noexcept { return reinterpret_cast<const uintptr_t*>(this + 1); }
};

// What identifies a site.
struct SiteKey {
  const uintptr_t* frames;
  unsigned frame_count;
  bool complete;
  uint64_t bytes;
  const char* thread;  // os::thread_name_capacity bytes, zeroes behind its end
};

// Sizes of blocks in the profile: those of size classes, and likewise eight for each doubling above.
uint64_t rounded_size(size_t size) noexcept;

class Sites {
 public:
  // Effects: maps the table; with less than `bytes` where the system refuses. False when there is no memory.
  bool map(size_t bytes) noexcept;

  // Returns: null when the table is full.
  Site* find_or_add(const SiteKey& key) noexcept;

  // Effects: the table is as it was mapped. Requires: nobody knows a site.
  void clear() noexcept;

  const Site* first() const noexcept { return newest_; }
  Site* first_to_change() noexcept { return newest_; }
  size_t count() const noexcept { return count_; }
  size_t frames() const noexcept { return frames_; }  // of all sites

 private:
  static constexpr size_t bucket_count = size_t{1} << 15;

  Site** buckets_ = nullptr;
  char* free_ = nullptr;
  char* end_ = nullptr;
  Site* newest_ = nullptr;
  size_t count_ = 0;
  size_t frames_ = 0;
};

}  // namespace sluice::profile
