// See records.hpp.
#include "profile/records.hpp"

#include "os/process.hpp"

namespace sluice::profile {
namespace {

constexpr size_t least_count = size_t{1} << 13;

}  // namespace

bool Records::map(size_t count) noexcept {
  for (; count >= least_count; count /= 2) {
    records_ = static_cast<Record*>(os::map_scratch(count * sizeof(Record)));
    if (records_ == nullptr) continue;
    count_ = count;
    return true;
  }
  return false;
}

RecordNumber Records::take_run(size_t count) noexcept {
  if (count > count_ - taken_) return no_record;
  const size_t first = taken_;
  taken_ += count;
  return static_cast<RecordNumber>(first);
}

RecordNumber Records::take() noexcept {
  const RecordNumber number = unused_;
  if (number == no_record) return take_run(1);
  unused_ = records_[number].next;
  return number;
}

void Records::give_back(RecordNumber number) noexcept {
  records_[number].next = unused_;
  unused_ = number;
}

}  // namespace sluice::profile
