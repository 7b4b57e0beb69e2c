// See profile_encoder.hpp.
#include "stats/profile_encoder.hpp"

#include <cstdint>
#include <cstring>

#include "base/print.hpp"
#include "os/diagnosis.hpp"
#include "os/keep_errno.hpp"
#include "os/objects.hpp"
#include "os/process.hpp"
#include "profile/modules.hpp"
#include "profile/profile.hpp"
#include "sluice/sluice.h"
#include "stats/live_parts.hpp"
#include "stats/protobuf.hpp"

namespace sluice::stats {
namespace {

using profile::Site;

// Fields of the messages, by their numbers in profile.proto.
enum ProfileField {
  SampleType = 1,
  SampleOf,
  MappingOf,
  LocationOf,
  StringOf = 6,
  Time = 9,
  Duration,
  PeriodType,
  Period,
  Comment,
  DefaultType
};
enum TypeField { Type = 1, Unit };
enum SampleField { Locations = 1, Values, Label };
enum LabelField { Key = 1, Text, Number, NumberUnit };
enum MappingField { MappingId = 1, Start, Limit, Offset, File, BuildId };
enum LocationField { LocationId = 1, InMapping, Address };

struct ValueType {
  const char* name;
  const char* unit;
};
constexpr ValueType value_types[] = {{"alloc_objects", "count"},
                                     {"alloc_space", "bytes"},
                                     {"inuse_objects", "count"},
                                     {"inuse_space", "bytes"},
                                     {"peak_objects", "count"},
                                     {"peak_space", "bytes"},
                                     {"freed_elsewhere_objects", "count"},
                                     {"short_lived_objects", "count"},
                                     {"lifetime_total", "milliseconds"}};
constexpr size_t default_type = 3;  // inuse_space
constexpr size_t usual_values = sizeof value_types / sizeof *value_types;
// Where it is known what the program can still find.
constexpr ValueType leak_types[] = {{"leaked_objects", "count"},
                                    {"leaked_space", "bytes"},
                                    {"indirectly_leaked_objects", "count"},
                                    {"indirectly_leaked_space", "bytes"}};
constexpr size_t most_values = usual_values + sizeof leak_types / sizeof *leak_types;
enum ValuePlace { InuseObjects = 2, InuseSpace, LeakedObjects = usual_values, IndirectObjects = LeakedObjects + 2 };

// Upper bounds of what each thing takes.
constexpr size_t site_bytes = 256, frame_bytes = 32;  // a frame has a reference, and a location if it is a new one
constexpr size_t most_mappings = 4096;
constexpr size_t mapping_bytes = 4096 + 256;
constexpr size_t comment_bytes = 32 * 1024;
constexpr size_t name_slots = 4096;

struct KnownMapping {
  uintptr_t start, end;
  uint64_t id;
};
struct KnownLocation {
  uintptr_t address;  // 0: none
  uint64_t id;
};
struct KnownName {
  const char* text;  // null: none
  uint64_t index;
};

// What encoding works on, at the front of its memory.
struct Work {
  KnownMapping mappings[most_mappings];
  KnownName names[name_slots];
  char text[comment_bytes];
};

uint64_t rounded(double value) noexcept {
  if (!(value > 0)) return 0;
  const auto whole = static_cast<uint64_t>(value);
  return whole + (value - static_cast<double>(whole) >= 0.5 ? 1 : 0);
}

// A text that is written into memory; cut where it does not fit.
class Line {
 public:
  explicit Line(char* memory) noexcept : memory_(memory), out_(buffer_, sizeof buffer_, append, this) {}
  Print& out() noexcept { return out_; }
  std::string_view text() noexcept {
    out_.flush();
    return {memory_, length_};
  }

 private:
  static int append(void* context, const char* data, size_t size) noexcept {
    Line& line = *static_cast<Line*>(context);
    if (line.length_ + size > comment_bytes) return ENOSPC;
    memcpy(line.memory_ + line.length_, data, size);
    line.length_ += size;
    return 0;
  }

  char* memory_;
  size_t length_ = 0;
  char buffer_[64];
  Print out_;
};

class Encoder {
 public:
  Encoder(Work& work, KnownLocation* locations, size_t location_slots, Protobuf& main, Protobuf& strings,
          const ProfileExtras& extras) noexcept
      : work_(work),
        locations_(locations),
        location_slots_(location_slots),
        main_(main),
        strings_(strings),
        extras_(extras) {
    (void)string("");
  }

  void mappings() noexcept {
    os::for_each_code_mapping(
        [](void* self, const os::CodeMapping& mapping) noexcept { static_cast<Encoder*>(self)->add(mapping); }, this);
  }

  // Those of objects that were closed, where nothing else lies now. Requires: the others are there.
  void closed_modules() noexcept {
    const profile::Modules& modules = profile::modules();
    for (size_t i = modules.count(); i-- > 0;) {
      const os::NotedModule& module = modules.at(i);
      if (module.path[0] != '\0' && is_free(module.code_start, module.code_end))
        add({module.code_start, module.code_end, module.code_offset, module.path, module.build_id});
    }
  }

  void head(const profile::Totals& totals) noexcept {
    for (const ValueType& type : value_types)
      add_type(SampleType, type);
    if (has_leaks())
      for (const ValueType& type : leak_types)
        add_type(SampleType, type);
    add_type(PeriodType, {"space", "bytes"});
    main_.number(Period, totals.rate);
    main_.number(DefaultType, string(value_types[default_type].name));
    const uint64_t duration = os::clock_ns() - totals.started_ns;
    main_.number(Time, os::wall_clock_ns() - duration);
    main_.number(Duration, duration);
    comments(totals);
    bytes_ = string("bytes");
    thread_ = string("thread");
    born_ = string("born");
    site_ = string("site");
    under_ = string("under");
  }

  // `newest`: of all sites; the number of another one is its distance from that in memory.
  void site(const Site& s, uint64_t peak, const LiveParts& parts, const Site& newest) noexcept {
    const profile::Tally& at_peak = profile::at_peak(s, peak);
    uint64_t values[most_values] = {rounded(s.allocated.objects), rounded(s.allocated.bytes), rounded(s.live.objects),
                                    rounded(s.live.bytes),        rounded(at_peak.objects),   rounded(at_peak.bytes),
                                    rounded(s.freed_elsewhere),   rounded(s.short_lived),     rounded(s.lifetime_ms)};
    for (unsigned i = 0; i < s.frame_count; ++i)
      (void)location(s.frames()[i]);
    const uint64_t name = s.thread[0] != '\0' ? thread_name(s.thread) : 0;
    parts.for_each_of(s, [&](const LivePart& part) noexcept {
      const uint64_t objects = rounded(part.live.objects), bytes = rounded(part.live.bytes);
      values[InuseObjects] -= objects < values[InuseObjects] ? objects : values[InuseObjects];
      values[InuseSpace] -= bytes < values[InuseSpace] ? bytes : values[InuseSpace];
      uint64_t of_part[most_values]{};
      of_part[InuseObjects] = objects;
      of_part[InuseSpace] = bytes;
      if (part.verdict != Verdict::NotLeaked) {
        const size_t place = part.verdict == Verdict::Direct ? LeakedObjects : IndirectObjects;
        of_part[place] = objects;
        of_part[place + 1] = bytes;
      }
      sample(s, of_part, name, [&]() noexcept {
        if (part.generation != 0) number_label(born_, part.generation);
        if (part.verdict == Verdict::Direct) number_label(site_, number_of(s, newest));
        if (part.verdict == Verdict::Indirect) number_label(under_, number_of(*part.under, newest));
      });
    });
    sample(s, values, name, []() noexcept {});
  }

 private:
  bool has_leaks() const noexcept { return extras_.reachability != nullptr; }
  size_t value_count() const noexcept { return has_leaks() ? most_values : usual_values; }

  static uint64_t number_of(const Site& site, const Site& newest) noexcept {
    return static_cast<uint64_t>(reinterpret_cast<const char*>(&newest) - reinterpret_cast<const char*>(&site)) /
               alignof(Site) +
           1;
  }

  void number_label(uint64_t key, uint64_t value, uint64_t unit = 0) noexcept {
    main_.message(Label, [&]() noexcept {
      main_.number(Key, key);
      main_.number(Number, value);
      if (unit != 0) main_.number(NumberUnit, unit);
    });
  }

  template <typename AddLabels>
  void sample(const Site& s, const uint64_t* values, uint64_t name, AddLabels add_labels) noexcept {
    main_.message(SampleOf, [&]() noexcept {
      main_.message(Locations, [&]() noexcept {
        for (unsigned i = 0; i < s.frame_count; ++i)
          main_.varint(location(s.frames()[i]));
      });
      main_.message(Values, [&]() noexcept {
        for (size_t i = 0; i != value_count(); ++i)
          main_.varint(values[i]);
      });
      number_label(bytes_, s.bytes, bytes_);
      if (name != 0) {
        main_.message(Label, [&]() noexcept {
          main_.number(Key, thread_);
          main_.number(Text, name);
        });
      }
      add_labels();
    });
  }

  uint64_t string(std::string_view text) noexcept {
    strings_.text(StringOf, text);
    return string_count_++;
  }

  void add_type(unsigned field, const ValueType& type) noexcept {
    const uint64_t name = string(type.name);
    const uint64_t unit = string(type.unit);
    main_.message(field, [&]() noexcept {
      main_.number(Type, name);
      main_.number(Unit, unit);
    });
  }

  void add(const os::CodeMapping& mapping) noexcept {
    if (mapping_count_ == most_mappings) return;
    size_t at = mapping_count_++;
    for (; at != 0 && work_.mappings[at - 1].start > mapping.start; --at)
      work_.mappings[at] = work_.mappings[at - 1];
    work_.mappings[at] = {mapping.start, mapping.end, mapping_count_};
    const uint64_t file = string(mapping.path);
    const uint64_t id = mapping.build_id.empty() ? 0 : string(mapping.build_id);
    main_.message(MappingOf, [&]() noexcept {
      main_.number(MappingId, mapping_count_);
      main_.number(Start, mapping.start);
      main_.number(Limit, mapping.end);
      main_.number(Offset, mapping.offset);
      main_.number(File, file);
      main_.number(BuildId, id);
    });
  }

  // The first mapping that ends behind an address.
  size_t first_beyond(uintptr_t address) const noexcept {
    size_t low = 0;
    for (size_t high = mapping_count_; low != high;) {
      const size_t middle = low + (high - low) / 2;
      if (work_.mappings[middle].end <= address)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  bool is_free(uintptr_t start, uintptr_t end) const noexcept {
    const size_t next = first_beyond(start);
    return next == mapping_count_ || work_.mappings[next].start >= end;
  }

  // The number of the mapping in which an address lies; 0 where it is not known.
  uint64_t mapping_of(uintptr_t address) const noexcept {
    const size_t next = first_beyond(address);
    return next != mapping_count_ && work_.mappings[next].start <= address ? work_.mappings[next].id : 0;
  }

  // The number of the location of an address, which is written when it is first met.
  uint64_t location(uintptr_t address) noexcept {
    size_t slot = (address * 0x9e3779b97f4a7c15 >> 20) & (location_slots_ - 1);
    while (locations_[slot].address != address && locations_[slot].address != 0)
      slot = (slot + 1) & (location_slots_ - 1);
    KnownLocation& known = locations_[slot];
    if (known.address != 0) return known.id;
    known = {address, ++location_count_};
    main_.message(LocationOf, [&]() noexcept {
      main_.number(LocationId, known.id);
      main_.number(InMapping, mapping_of(address));
      main_.number(Address, address);
    });
    return known.id;
  }

  uint64_t thread_name(const char* name) noexcept {
    uint64_t words[2];
    memcpy(words, name, sizeof words);
    const uint64_t hash = (words[0] ^ words[1] * 0x9e3779b97f4a7c15) * 0x9e3779b97f4a7c15 >> 52;
    KnownName& known = work_.names[hash];
    if (known.text != nullptr && strcmp(known.text, name) == 0) return known.index;
    known = {name, string(name)};  // a name may come twice where two share a slot
    return known.index;
  }

  template <typename Write>
  void comment(Write write) noexcept {
    Line line(work_.text);
    write(line.out());
    main_.number(Comment, string(line.text()));
  }

  void comments(const profile::Totals& totals) noexcept {
    comment([&](Print& out) noexcept { out.text("sluice.pid=").decimal(extras_.pid); });
    comment([](Print& out) noexcept { out.text("sluice.program=").text(os::program_called()); });
    comment([](Print& out) noexcept { out.text("sluice.version=").text(SLUICE_VERSION); });
    comment([&](Print& out) noexcept { out.text("sluice.samples=").decimal(totals.samples); });
    comment([&](Print& out) noexcept { out.text("sluice.dropped=").decimal(totals.dropped); });
    comment([&](Print& out) noexcept { out.text("sluice.truncated=").decimal(totals.truncated); });
    comment([&](Print& out) noexcept { out.text("sluice.number=").decimal(totals.generation + uint64_t{1}); });
    if (has_leaks()) comment([](Print& out) noexcept { out.text("sluice.reachability=known"); });
    if (!extras_.unknown.empty())
      comment([&](Print& out) noexcept { out.text("sluice.reachability=unknown: ").text(extras_.unknown); });
    comment([&](Print& out) noexcept { out.text("sluice.peak_ns=").decimal(totals.peak_ns); });
    comment([&](Print& out) noexcept {
      out.text("sluice.timeline=");
      for (unsigned i = 0; i < totals.point_count; ++i) {
        if (i != 0) out.character(' ');
        out.decimal(totals.points[i].ms).character(':').decimal(rounded(totals.points[i].live_bytes));
      }
    });
  }

  Work& work_;
  KnownLocation* const locations_;
  const size_t location_slots_;
  Protobuf& main_;
  Protobuf& strings_;
  const ProfileExtras& extras_;
  size_t mapping_count_ = 0;
  uint64_t location_count_ = 0;
  uint64_t string_count_ = 0;
  uint64_t bytes_ = 0, thread_ = 0, born_ = 0, site_ = 0, under_ = 0;
};

size_t power_above(size_t count) noexcept {
  size_t power = 64;
  while (power < count)
    power *= 2;
  return power;
}

}  // namespace

EncodedProfile::EncodedProfile(bool wait, const ProfileExtras& extras) noexcept {
  const KeepErrno keep;
  constexpr size_t most_spare = size_t{1} << 20;
  for (size_t spare = 256; spare <= most_spare && encode(wait, extras, spare); spare *= 4)
    give_back();
}

// What is to be encoded, and a little more, since more may come meanwhile.
struct EncodedProfile::Sizes {
  size_t sites, frames, records;  // records: 0 where parts are of no interest
  size_t parts, part_frames;
};

bool EncodedProfile::measure(bool wait, const ProfileExtras& extras, size_t spare, Sizes* sizes) noexcept {
  const profile::Reading now(wait);
  if (!now) return false;
  const bool has_parts = extras.reachability != nullptr || now.totals().generation != 0;
  *sizes = {now.sites().count() + spare, now.sites().frames() + spare * profile::most_frames / 4,
            has_parts ? now.records().end() + spare * profile::most_frames : 0, 0, 0};
  if (!has_parts) return true;
  const size_t bytes = LiveParts::bytes_for(now.records().end());
  void* const memory = os::map_scratch(bytes);
  if (memory == nullptr) return true;  // and there is none for the file, either
  LiveParts parts(static_cast<char*>(memory));
  parts.add(now.records(), extras.reachability);
  sizes->parts = parts.count() + spare;
  sizes->part_frames = parts.frames() + spare * profile::most_frames / 4;
  os::unmap_scratch(memory, bytes);
  return true;
}

// Returns: whether so much came in between that it should be tried again, with more to spare.
bool EncodedProfile::encode(bool wait, const ProfileExtras& extras, size_t spare) noexcept {
  Sizes sizes{};
  outcome_ = Outcome::Busy;
  if (!measure(wait, extras, spare, &sizes)) return false;
  outcome_ = Outcome::NoMemory;
  // Address space, of which little is used.
  const size_t location_slots = power_above(2 * sizes.frames);
  const size_t string_bytes = sizes.sites * 32 + 2 * comment_bytes + most_mappings * mapping_bytes;
  const size_t main_bytes = (sizes.sites + sizes.parts) * site_bytes +
                            (sizes.frames + sizes.part_frames) * frame_bytes + most_mappings * 64 + comment_bytes;
  const size_t location_bytes = location_slots * sizeof(KnownLocation);
  const size_t parts_bytes = LiveParts::bytes_for(sizes.records);
  bytes_ = sizeof(Work) + location_bytes + parts_bytes + string_bytes + main_bytes;
  memory_ = static_cast<char*>(os::map_scratch(bytes_));
  if (memory_ == nullptr) return false;
  char* const behind_work = memory_ + sizeof(Work) + location_bytes;
  LiveParts parts(behind_work);
  Protobuf strings(behind_work + parts_bytes, string_bytes);
  Protobuf main(behind_work + parts_bytes + string_bytes, main_bytes);
  Encoder encoder(*reinterpret_cast<Work*>(memory_), reinterpret_cast<KnownLocation*>(memory_ + sizeof(Work)),
                  location_slots, main, strings, extras);
  encoder.mappings();
  {
    profile::Reading now(wait);
    if (!now) {
      outcome_ = Outcome::Busy;
      return false;
    }
    if (now.sites().count() > sizes.sites || now.sites().frames() > sizes.frames) return true;
    if (sizes.records != 0) {
      if (now.records().end() > sizes.records) return true;
      parts.add(now.records(), extras.reachability);
      if (parts.count() > sizes.parts || parts.frames() > sizes.part_frames) return true;
    }
    const profile::Totals totals = now.totals();
    encoder.closed_modules();
    encoder.head(totals);
    const Site* const newest = now.sites().first();
    for (const Site* site = newest; site != nullptr; site = site->next)
      encoder.site(*site, totals.peak, parts, *newest);
    if (!main.full() && !strings.full()) now.begin_generation();
  }
  if (main.full() || strings.full()) return false;
  first_ = main.bytes();
  second_ = strings.bytes();
  outcome_ = Outcome::Done;
  return false;
}

void EncodedProfile::give_back() noexcept {
  if (memory_ != nullptr) os::unmap_scratch(memory_, bytes_);
  memory_ = nullptr;
}

EncodedProfile::~EncodedProfile() {
  const KeepErrno keep;
  give_back();
}

}  // namespace sluice::stats
