// The profile as pprof's profile.proto, uncompressed. Open it to add a value to each site, or a line to the comments.
// lib/docs/profile.md lists what the file holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stats/reachability.hpp"

namespace sluice::stats {

// What a profile is to say beside its samples.
struct ProfileExtras {
  uint64_t pid;                      // of the process that it is of
  const Reachability* reachability;  // null: not known
  std::string_view unknown;          // why, where somebody asked; else empty
};

// A profile in memory of its own. Neither allocates nor changes errno.
class EncodedProfile {
 public:
  // Effects: encodes the profile as it is now. No lock is held when it returns. Without `wait` there is nothing where
  // another thread, or this one, is in the profile.
  EncodedProfile(bool wait, const ProfileExtras& extras) noexcept;
  ~EncodedProfile();
  EncodedProfile(const EncodedProfile&) = delete;
  EncodedProfile& operator=(const EncodedProfile&) = delete;

  enum class Outcome { Done, Busy, NoMemory };
  Outcome outcome() const noexcept { return outcome_; }

  // In two pieces, one after the other.
  std::string_view first() const noexcept { return first_; }
  std::string_view second() const noexcept { return second_; }

 private:
  struct Sizes;
  static bool measure(bool wait, const ProfileExtras& extras, size_t spare, Sizes* sizes) noexcept;
  bool encode(bool wait, const ProfileExtras& extras, size_t spare) noexcept;
  void give_back() noexcept;

  char* memory_ = nullptr;
  size_t bytes_ = 0;
  std::string_view first_, second_;
  Outcome outcome_ = Outcome::NoMemory;
};

}  // namespace sluice::stats
