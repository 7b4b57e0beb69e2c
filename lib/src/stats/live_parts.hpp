// Parts of what is alive at a site: when its blocks were born, and whether the program can still find them. Open it
// when a profile's labels `born` or `under`, or its figures of leaks, are in question.
//
// A site's sample in the file holds what is alive of the first generation and not leaked, or not known to be; each part
// is a sample of its own beside it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profile/profile.hpp"
#include "stats/reachability.hpp"

namespace sluice::stats {

enum class Verdict : uint8_t { NotLeaked, Direct, Indirect };

struct LivePart {
  LivePart* next;  // in its bucket
  const profile::Site* site;
  const profile::Site* under;  // indirect: the site of the block that leads to these
  uint16_t generation;
  Verdict verdict;
  profile::Tally live;
};

class LiveParts {
 public:
  // How much memory it needs for so many records.
  static size_t bytes_for(size_t records) noexcept;

  // Requires: the memory reads as zero and holds bytes_for(so many records).
  explicit LiveParts(char* memory) noexcept;

  // Effects: sums up all records that are alive. `reachability` may be null.
  void add(const profile::Records& records, const Reachability* reachability) noexcept;

  size_t count() const noexcept { return count_; }
  size_t frames() const noexcept { return frames_; }  // of the stacks of all parts

  // Calls found(part) for each part of a site.
  template <typename Found>
  void for_each_of(const profile::Site& site, Found found) const noexcept {
    for (const LivePart* part = buckets_[bucket_of(site)]; part != nullptr; part = part->next)
      if (part->site == &site) found(*part);
  }

 private:
  static constexpr size_t bucket_bits = 14;
  static constexpr size_t bucket_bytes = (size_t{1} << bucket_bits) * sizeof(void*);
  static size_t bucket_of(const profile::Site& site) noexcept {
    return static_cast<size_t>(reinterpret_cast<uintptr_t>(&site) * 0x9e3779b97f4a7c15 >> (64 - bucket_bits));
  }
  LivePart& part_for(const LivePart& key) noexcept;

  LivePart** const buckets_;
  LivePart* const parts_;
  size_t count_ = 0;
  size_t frames_ = 0;
};

}  // namespace sluice::stats
