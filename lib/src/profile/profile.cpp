// See profile.hpp.
#include "profile/profile.hpp"

#include <atomic>
#include <cstring>

#include "os/diagnosis.hpp"
#include "os/memory.hpp"
#include "os/seldom_touched.hpp"
#include "profile/estimate.hpp"
#include "profile/modules.hpp"

namespace sluice::profile {

constinit std::atomic<DeferredWork> deferred_work{nullptr};

namespace {

// Address space; memory is what is used of it. A low rate takes many samples.
constexpr uint64_t low_rate = 4096;
constexpr size_t usual_site_bytes = size_t{32} << 20, most_site_bytes = size_t{128} << 20;
constexpr size_t usual_records = size_t{1} << 19, most_records = size_t{1} << 22;
constexpr uint64_t most_of_address_space = 32;  // one byte in so many where it is limited

constexpr uint64_t short_life_bytes = 64 * 1024;
constexpr uint64_t ns_per_ms = 1'000'000;

// What was live over time, at most once in a step. The step is doubled when there is no more room.
struct Timeline {
  Point points[most_points];
  unsigned count;
  uint64_t step_ms;
  uint64_t next_ms;

  void add(uint64_t ms, double live_bytes) noexcept {
    if (ms < next_ms) {
      if (count != 0) points[count - 1].live_bytes = live_bytes;
      return;
    }
    if (count == most_points) thin_out();
    points[count++] = {ms, live_bytes};
    next_ms = ms + step_ms;
  }

 private:
  void thin_out() noexcept {
    for (unsigned i = 0; i < most_points / 2; ++i)
      points[i] = points[2 * i + 1];
    count = most_points / 2;
    step_ms *= 2;
  }
};

struct Profile {
  Mutex lock{LockRank::Profile};
  std::atomic<uint64_t> rate{0};
  std::atomic<bool> abandoned{false};
  Sites sites SLUICE_GUARDED_BY(lock);
  Modules modules SLUICE_GUARDED_BY(lock);
  Records records;
  Blocks blocks SLUICE_GUARDED_BY(lock);
  std::atomic<uint64_t> last_rate{0};
  std::atomic<uint64_t> origin_ns{0};             // of the first start: births are told from here
  uint64_t begun_ns SLUICE_GUARDED_BY(lock) = 0;  // of the latest one, since the first
  size_t records_in_use SLUICE_GUARDED_BY(lock) = 0;
  uint64_t samples SLUICE_GUARDED_BY(lock) = 0;
  uint64_t truncated SLUICE_GUARDED_BY(lock) = 0;
  std::atomic<uint64_t> dropped{0};
  Tally live SLUICE_GUARDED_BY(lock){};
  double peak_bytes SLUICE_GUARDED_BY(lock) = 0;
  uint64_t peak SLUICE_GUARDED_BY(lock) = 0;
  uint64_t peak_ns SLUICE_GUARDED_BY(lock) = 0;
  uint16_t generation SLUICE_GUARDED_BY(lock) = 0;
  Timeline timeline SLUICE_GUARDED_BY(lock){};
};
SLUICE_SELDOM_TOUCHED_VALUES constinit Profile self{};
constinit std::atomic<RecordNumber> waiting{no_record};  // ended by signal handlers that interrupted the lock's holder

uint64_t now_ns() noexcept {
  return os::clock_ns() - self.origin_ns.load(std::memory_order_relaxed);
}

// Changes what is live at a site, and finds the peak. What the site had at the latest peak is kept when it first
// changes after it: so no peak has to be copied.
void change_live(Site& site, double objects, double bytes, uint64_t now) noexcept SLUICE_REQUIRES(self.lock) {
  if (site.seen_peak != self.peak) {
    site.at_peak = site.live;
    site.seen_peak = self.peak;
  }
  site.live.objects += objects;
  site.live.bytes += bytes;
  self.live.objects += objects;
  self.live.bytes += bytes;
  if (self.live.bytes > self.peak_bytes) {
    self.peak_bytes = self.live.bytes;
    ++self.peak;
    self.peak_ns = now - self.begun_ns;
  }
  if (now >= self.begun_ns) self.timeline.add((now - self.begun_ns) / ns_per_ms, self.live.bytes);
}

// When a sample was taken. It may have waited for the lock while another profile began.
uint64_t birth_of(const Sample& sample) noexcept SLUICE_REQUIRES(self.lock) {
  const uint64_t ns = sample.taken_ns - self.origin_ns.load(std::memory_order_relaxed);
  return ns > self.begun_ns ? ns : self.begun_ns;
}

// Gives the sample a site and fills its record. False when there is no room for the site, or the profile is another one
// by now.
bool fill(Record& record, const Sample& sample) noexcept SLUICE_REQUIRES(self.lock) {
  if (sample.rate != self.rate.load(std::memory_order_relaxed)) return false;
  const size_t known = self.sites.count();
  Site* const site = self.sites.find_or_add(
      {sample.frames, sample.frame_count, sample.complete, rounded_size(sample.size), sample.thread});
  if (site == nullptr) return false;
  if (self.sites.count() != known) self.modules.note(sample.frames, sample.frame_count);
  record.site = site;
  record.weight = weight_of(sample.size, sample.rate);
  record.size = sample.size;
  record.born_ns = birth_of(sample);
  record.born_bytes = sample.moment.allocated_bytes;
  record.thread = sample.moment.thread;
  record.generation = self.generation;
  const double bytes = record.weight * static_cast<double>(sample.size);
  site->allocated.objects += record.weight;
  site->allocated.bytes += bytes;
  change_live(*site, record.weight, bytes, record.born_ns);
  ++self.samples;
  ++self.records_in_use;
  if (!sample.complete) ++self.truncated;
  return true;
}

void recycle(RecordNumber number) noexcept SLUICE_REQUIRES(self.lock) {
  Record& record = self.records.at(number);
  record.state.store(RecordState::Unused, std::memory_order_relaxed);
  if (record.unit != unit_index_none)
    self.blocks.give_back(self.records, number);
  else
    self.records.give_back(number);
}

// The end of a record's block, of which one thread alone knows.
void retire(RecordNumber number, const Moment& moment, uint64_t now) noexcept SLUICE_REQUIRES(self.lock) {
  const Record& record = self.records.at(number);
  Site& site = *record.site;
  change_live(site, -record.weight, -record.weight * static_cast<double>(record.size), now);
  --self.records_in_use;
  if (record.born_ns < self.begun_ns) return recycle(number);  // not allocated in this profile
  if (moment.thread != record.thread) site.freed_elsewhere += record.weight;
  if (moment.allocated_bytes - record.born_bytes < short_life_bytes || moment.allocated_bytes < record.born_bytes)
    site.short_lived += record.weight;
  if (now > record.born_ns)
    site.lifetime_ms += record.weight * static_cast<double>(now - record.born_ns) / double{ns_per_ms};
  recycle(number);
}

// Holds the lock, and retires what signal handlers have left.
class SLUICE_HOLDS_LOCK ProfileLock {
 public:
  ProfileLock() noexcept SLUICE_TAKES(self.lock) {
    self.lock.lock();
    if (waiting.load(std::memory_order_relaxed) == no_record) return;
    RecordNumber number = waiting.exchange(no_record, std::memory_order_acquire);  // pairs with defer
    while (number != no_record) {
      const Record& record = self.records.at(number);
      const RecordNumber next = record.next;
      retire(number, {record.thread, record.born_bytes}, now_ns());
      number = next;
    }
  }
  ~ProfileLock() SLUICE_GIVES_BACK() { self.lock.unlock(); }
  ProfileLock(const ProfileLock&) = delete;
  ProfileLock& operator=(const ProfileLock&) = delete;
};

void defer(RecordNumber number) noexcept {
  RecordNumber head = waiting.load(std::memory_order_relaxed);
  do {
    self.records.at(number).next = head;
  } while (!waiting.compare_exchange_weak(head, number, std::memory_order_release, std::memory_order_relaxed));
}

// Whether this thread may wait for the lock. Its holder may wait for the region's, which a signal handler's thread may
// hold: it would wait for itself.
bool may_wait() noexcept {
  return !self.lock.held_by_this_thread() && !region::mutex().held_by_this_thread();
}

bool is_open() noexcept {
  return may_wait() && !self.abandoned.load(std::memory_order_relaxed);
}

bool end_life(RecordNumber number) noexcept {
  RecordState live = RecordState::Live;
  return self.records.at(number).state.compare_exchange_strong(live, RecordState::Ended, std::memory_order_acquire,
                                                               std::memory_order_relaxed);
}

// Of the child of a fork that has given the profile up: the record stays ended.
void retire_or_defer(RecordNumber number, const Moment& moment) noexcept {
  if (self.abandoned.load(std::memory_order_relaxed)) return;
  if (!may_wait()) return defer(number);
  const ProfileLock held;
  retire(number, moment, now_ns());
}

}  // namespace

namespace {

// Once: samples that are alive need the tables for good.
bool map_tables(uint64_t rate) noexcept SLUICE_REQUIRES(self.lock) {
  size_t site_bytes = rate < low_rate ? most_site_bytes : usual_site_bytes;
  size_t records = rate < low_rate ? most_records : usual_records;
  const uint64_t limit = os::address_space_limit() / most_of_address_space;
  while (site_bytes + records * sizeof(Record) > limit && records > 1) {
    site_bytes /= 2;
    records /= 2;
  }
  if (!self.sites.map(site_bytes) || !self.records.map(records)) return false;
  (void)self.modules.map();  // without it closed libraries have no names
  self.origin_ns.store(os::clock_ns(), std::memory_order_relaxed);
  return true;
}

// Forgets all but what is alive. Sites of which a block may be alive stay where they are.
void begin_anew() noexcept SLUICE_REQUIRES(self.lock) {
  self.begun_ns = now_ns();
  self.samples = self.truncated = 0;
  self.dropped.store(0, std::memory_order_relaxed);
  if (self.records_in_use == 0) {
    self.sites.clear();
    self.live = {};  // what rounding has left
  }
  for (Site* site = self.sites.first_to_change(); site != nullptr; site = site->next) {
    site->allocated = {};
    site->freed_elsewhere = site->short_lived = site->lifetime_ms = 0;
  }
  self.peak_bytes = self.live.bytes;
  ++self.peak;
  self.peak_ns = 0;
  self.timeline.count = 0;
  self.timeline.step_ms = 1;
  self.timeline.next_ms = 0;
}

}  // namespace

Started start(uint64_t rate) noexcept {
  if (self.abandoned.load(std::memory_order_relaxed)) return Started::Abandoned;
  const ProfileLock held;
  if (self.rate.load(std::memory_order_relaxed) != 0) return Started::Already;
  if (!exists() && !map_tables(rate)) return Started::NoMemory;
  begin_anew();
  self.last_rate.store(rate, std::memory_order_release);
  self.rate.store(rate, std::memory_order_release);
  return Started::Yes;
}

bool stop() noexcept {
  if (self.abandoned.load(std::memory_order_relaxed)) return self.rate.exchange(0, std::memory_order_relaxed) != 0;
  const ProfileLock held;
  return self.rate.exchange(0, std::memory_order_relaxed) != 0;
}

bool exists() noexcept {
  return self.last_rate.load(std::memory_order_acquire) != 0;
}

uint64_t rate() noexcept {
  return self.rate.load(std::memory_order_acquire);
}

void do_deferred_work() noexcept {
  if (deferred_work.load(std::memory_order_relaxed) == nullptr) [[likely]]
    return;
  if (const DeferredWork work = deferred_work.exchange(nullptr, std::memory_order_acquire)) work();
}

void count_dropped() noexcept {
  self.dropped.fetch_add(1, std::memory_order_relaxed);
}

void* allocate(const Sample& sample, unsigned size_class) noexcept {
  if (is_open()) {
    const ProfileLock held;
    RecordNumber number = no_record;
    if (void* const block = self.blocks.take(self.records, size_class, &number)) {
      if (fill(self.records.at(number), sample)) {
        self.records.at(number).state.store(RecordState::Live, std::memory_order_release);
        return block;
      }
      recycle(number);
    }
  }
  count_dropped();
  return nullptr;
}

RecordNumber begin(const Sample& sample) noexcept {
  if (is_open()) {
    const ProfileLock held;
    const RecordNumber number = self.records.take();
    if (number != no_record) {
      Record& record = self.records.at(number);
      record.unit = unit_index_none;
      if (fill(record, sample)) {
        record.state.store(RecordState::Live, std::memory_order_release);
        return number;
      }
      self.records.give_back(number);
    }
  }
  count_dropped();
  return no_record;
}

void end(RecordNumber number, const Moment& moment) noexcept {
  if (end_life(number)) retire_or_defer(number, moment);
}

bool free(const void* block, const Moment& moment) noexcept {
  const RecordNumber number = record_of(block);
  if (number == no_record || !end_life(number)) return false;
  retire_or_defer(number, moment);
  return true;
}

bool is_live(const void* block) noexcept {
  const RecordNumber number = record_of(block);
  return number != no_record && self.records.at(number).state.load(std::memory_order_relaxed) == RecordState::Live;
}

void resize(RecordNumber number, size_t size) noexcept {
  if (!is_open()) return;
  const ProfileLock held;
  Record& record = self.records.at(number);
  if (record.state.load(std::memory_order_relaxed) != RecordState::Live) return;
  const double grown = static_cast<double>(size) - static_cast<double>(record.size);
  if (grown > 0) record.site->allocated.bytes += record.weight * grown;
  change_live(*record.site, 0, record.weight * grown, now_ns());
  record.size = size;
}

const Site* site_of(RecordNumber number) noexcept {
  return number != no_record ? self.records.at(number).site : nullptr;
}

Reading::Reading(bool wait) noexcept : holds_(false) {
  if (self.lock.held_by_this_thread()) return;
  if (wait && may_wait())
    self.lock.lock();
  else if (!self.lock.try_lock())
    return;
  holds_ = true;
}

Reading::~Reading() {
  if (holds_) self.lock.unlock();
}

Totals Reading::totals() const noexcept SLUICE_UNCHECKED_LOCKS {
  return {self.last_rate.load(std::memory_order_relaxed),
          self.samples,
          self.dropped.load(std::memory_order_relaxed),
          self.truncated,
          self.origin_ns.load(std::memory_order_relaxed) + self.begun_ns,
          self.peak_ns,
          self.peak,
          self.generation,
          self.live,
          self.timeline.count,
          self.timeline.points};
}

const Sites& Reading::sites() const noexcept SLUICE_UNCHECKED_LOCKS {
  return self.sites;
}

const Records& Reading::records() const noexcept {
  return self.records;
}

void Reading::begin_generation() noexcept SLUICE_UNCHECKED_LOCKS {
  if (self.generation != latest_generation) ++self.generation;
}

const Modules& modules() noexcept SLUICE_UNCHECKED_LOCKS {
  return self.modules;
}

ClassFigures figures(unsigned size_class) noexcept SLUICE_UNCHECKED_LOCKS {
  return {self.blocks.live(size_class), self.blocks.units(size_class)};
}

void abandon() noexcept {
  self.abandoned.store(true, std::memory_order_relaxed);
}

Mutex& mutex() noexcept {
  return self.lock;
}

}  // namespace sluice::profile
