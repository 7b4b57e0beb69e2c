// See live_parts.hpp.
#include "stats/live_parts.hpp"

#include <atomic>

namespace sluice::stats {

using profile::no_record;
using profile::Record;
using profile::RecordNumber;
using profile::RecordState;

size_t LiveParts::bytes_for(size_t records) noexcept {
  return bucket_bytes + records * sizeof(LivePart);
}

LiveParts::LiveParts(char* memory) noexcept
    : buckets_(reinterpret_cast<LivePart**>(memory)), parts_(reinterpret_cast<LivePart*>(memory + bucket_bytes)) {}

// The part that was met last is the first of its bucket: most often the next block belongs to it, too.
LivePart& LiveParts::part_for(const LivePart& key) noexcept {
  LivePart*& first = buckets_[bucket_of(*key.site)];
  for (LivePart** link = &first; *link != nullptr; link = &(*link)->next) {
    LivePart* const part = *link;
    if (part->site != key.site || part->under != key.under || part->generation != key.generation ||
        part->verdict != key.verdict)
      continue;
    *link = part->next;
    part->next = first;
    first = part;
    return *part;
  }
  LivePart* const part = &parts_[count_++];
  frames_ += key.site->frame_count;
  *part = key;
  part->next = first;
  first = part;
  return *part;
}

void LiveParts::add(const profile::Records& records, const Reachability* reachability) noexcept {
  for (RecordNumber number = no_record + 1; number < records.end(); ++number) {
    const Record& record = records.at(number);
    if (record.state.load(std::memory_order_relaxed) != RecordState::Live) continue;
    LivePart key{nullptr, record.site, nullptr, record.generation, Verdict::NotLeaked, {}};
    const RecordNumber leader = reachability != nullptr ? reachability->leader_of(number) : no_record;
    if (leader == number) {
      key.verdict = Verdict::Direct;
    } else if (leader != no_record) {
      key.verdict = Verdict::Indirect;
      key.under = records.at(leader).site;
    }
    if (key.generation == 0 && key.verdict == Verdict::NotLeaked) continue;  // it stays in the site's own sample
    LivePart& part = part_for(key);
    part.live.objects += record.weight;
    part.live.bytes += record.weight * static_cast<double>(record.size);
  }
}

}  // namespace sluice::stats
