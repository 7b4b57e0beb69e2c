// See sites.hpp.
#include "profile/sites.hpp"

#include <bit>
#include <cstring>

#include "base/size_class.hpp"
#include "os/memory.hpp"

namespace sluice::profile {
namespace {

constexpr size_t least_bytes = size_t{1} << 20;

uint64_t mix(uint64_t hash, uint64_t word) noexcept {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

uint64_t hash_of(const SiteKey& key) noexcept {
  uint64_t hash = mix(key.bytes, key.frame_count * 2 + (key.complete ? 1 : 0));
  uint64_t words[os::thread_name_capacity / sizeof(uint64_t)];
  memcpy(words, key.thread, sizeof words);
  for (const uint64_t word : words)
    hash = mix(hash, word);
  for (unsigned i = 0; i < key.frame_count; ++i)
    hash = mix(hash, key.frames[i]);
  return hash;
}

bool is_same(const Site& site, const SiteKey& key) noexcept {
  return site.bytes == key.bytes && site.frame_count == key.frame_count && site.complete == key.complete &&
         memcmp(site.thread, key.thread, sizeof site.thread) == 0 &&
         memcmp(site.frames(), key.frames, key.frame_count * sizeof *key.frames) == 0;
}

}  // namespace

uint64_t rounded_size(size_t size) noexcept {
  if (size <= max_small_size) return class_sizes[size_class_of(size)];
  if (size > PTRDIFF_MAX) return size;
  const unsigned step = static_cast<unsigned>(std::bit_width(size - 1)) - 4;  // an eighth of the power of two below
  return ((size - 1) >> step << step) + (uint64_t{1} << step);
}

bool Sites::map(size_t bytes) noexcept {
  constexpr size_t bucket_bytes = bucket_count * sizeof(void*);
  for (; bytes >= least_bytes; bytes /= 2) {
    auto* const memory = static_cast<char*>(os::map_scratch(bytes));
    if (memory == nullptr) continue;
    buckets_ = reinterpret_cast<Site**>(memory);
    free_ = memory + bucket_bytes;
    end_ = memory + bytes;
    return true;
  }
  return false;
}

void Sites::clear() noexcept {
  if (newest_ == nullptr) return;
  auto* const memory = reinterpret_cast<char*>(buckets_);
  // Whole pages go back to the system where it takes them.
  const size_t used = (static_cast<size_t>(free_ - memory) + os::page_size() - 1) / os::page_size() * os::page_size();
  const size_t whole = used < static_cast<size_t>(end_ - memory) ? used : static_cast<size_t>(end_ - memory);
  if (!os::drop(memory, whole)) memset(memory, 0, whole);
  free_ = memory + bucket_count * sizeof(void*);
  newest_ = nullptr;
  count_ = frames_ = 0;
}

Site* Sites::find_or_add(const SiteKey& key) noexcept {
  const uint64_t hash = hash_of(key);
  Site*& bucket = buckets_[hash % bucket_count];
  for (Site* site = bucket; site != nullptr; site = site->next_in_bucket)
    if (site->hash == hash && is_same(*site, key)) return site;
  const size_t frame_bytes = key.frame_count * sizeof *key.frames;
  if (static_cast<size_t>(end_ - free_) < sizeof(Site) + frame_bytes) return nullptr;
  auto* const site = reinterpret_cast<Site*>(free_);  // the memory reads as zero
  free_ += sizeof(Site) + frame_bytes;
  site->hash = hash;
  site->bytes = key.bytes;
  site->frame_count = key.frame_count;
  site->complete = key.complete;
  memcpy(site->thread, key.thread, sizeof site->thread);
  memcpy(site + 1, key.frames, frame_bytes);
  site->next_in_bucket = bucket;
  site->next = newest_;
  bucket = newest_ = site;
  ++count_;
  frames_ += key.frame_count;
  return site;
}

}  // namespace sluice::profile
