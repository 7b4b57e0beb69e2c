// See profile_encoder.hpp.
#include "stats/profile_encoder.hpp"

#include <errno.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "base/keep_errno.hpp"
#include "base/print.hpp"
#include "os/diagnosis.hpp"
#include "os/objects.hpp"
#include "os/process.hpp"
#include "profile/modules.hpp"
#include "profile/profile.hpp"
#include "sluice/sluice.h"
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
  Encoder(Work& work, KnownLocation* locations, size_t location_slots, Protobuf& main, Protobuf& strings) noexcept
      : work_(work), locations_(locations), location_slots_(location_slots), main_(main), strings_(strings) {
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
    add_type(PeriodType, {"space", "bytes"});
    main_.number(Period, totals.rate);
    main_.number(DefaultType, string(value_types[default_type].name));
    const uint64_t duration = os::clock_ns() - totals.started_ns;
    main_.number(Time, os::wall_clock_ns() - duration);
    main_.number(Duration, duration);
    comments(totals);
    bytes_ = string("bytes");
    thread_ = string("thread");
  }

  void site(const Site& s, uint64_t peak) noexcept {
    const profile::Tally& at_peak = profile::at_peak(s, peak);
    const double values[] = {s.allocated.objects, s.allocated.bytes, s.live.objects, s.live.bytes, at_peak.objects,
                             at_peak.bytes,       s.freed_elsewhere, s.short_lived,  s.lifetime_ms};
    static_assert(sizeof values / sizeof *values == sizeof value_types / sizeof *value_types);
    for (unsigned i = 0; i < s.frame_count; ++i)
      (void)location(s.frames()[i]);
    const uint64_t name = s.thread[0] != '\0' ? thread_name(s.thread) : 0;
    main_.message(SampleOf, [&]() noexcept {
      main_.message(Locations, [&]() noexcept {
        for (unsigned i = 0; i < s.frame_count; ++i)
          main_.varint(location(s.frames()[i]));
      });
      main_.message(Values, [&]() noexcept {
        for (const double value : values)
          main_.varint(rounded(value));
      });
      main_.message(Label, [&]() noexcept {
        main_.number(Key, bytes_);
        main_.number(Number, s.bytes);
        main_.number(NumberUnit, bytes_);
      });
      if (name == 0) return;
      main_.message(Label, [&]() noexcept {
        main_.number(Key, thread_);
        main_.number(Text, name);
      });
    });
  }

 private:
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
    comment([](Print& out) noexcept { out.text("sluice.pid=").decimal(static_cast<uint64_t>(getpid())); });
    comment([](Print& out) noexcept { out.text("sluice.program=").text(program_invocation_short_name); });
    comment([](Print& out) noexcept { out.text("sluice.version=").text(SLUICE_VERSION); });
    comment([&](Print& out) noexcept { out.text("sluice.samples=").decimal(totals.samples); });
    comment([&](Print& out) noexcept { out.text("sluice.dropped=").decimal(totals.dropped); });
    comment([&](Print& out) noexcept { out.text("sluice.truncated=").decimal(totals.truncated); });
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
  size_t mapping_count_ = 0;
  uint64_t location_count_ = 0;
  uint64_t string_count_ = 0;
  uint64_t bytes_ = 0, thread_ = 0;
};

size_t power_above(size_t count) noexcept {
  size_t power = 64;
  while (power < count)
    power *= 2;
  return power;
}

}  // namespace

EncodedProfile::EncodedProfile(bool wait) noexcept {
  const KeepErrno keep;
  constexpr size_t most_spare = size_t{1} << 20;
  for (size_t spare = 256; spare <= most_spare && encode(wait, spare); spare *= 4)
    give_back();
}

// Returns: whether so many sites came in between that it should be tried again, with more to spare.
bool EncodedProfile::encode(bool wait, size_t spare_sites) noexcept {
  size_t sites = spare_sites;
  size_t frames = spare_sites * profile::most_frames / 4;
  {
    const profile::Reading now(wait);
    if (!now) {
      outcome_ = Outcome::Busy;
      return false;
    }
    sites += now.sites().count();
    frames += now.sites().frames();
  }
  // Address space, of which little is used.
  const size_t location_slots = power_above(2 * frames);
  const size_t string_bytes = sites * 32 + 2 * comment_bytes + most_mappings * mapping_bytes;
  const size_t main_bytes = sites * site_bytes + frames * frame_bytes + most_mappings * 64 + comment_bytes;
  const size_t work_bytes = sizeof(Work) + location_slots * sizeof(KnownLocation);
  bytes_ = work_bytes + string_bytes + main_bytes;
  memory_ = static_cast<char*>(os::map_scratch(bytes_));
  if (memory_ == nullptr) return false;
  Protobuf strings(memory_ + work_bytes, string_bytes);
  Protobuf main(memory_ + work_bytes + string_bytes, main_bytes);
  Encoder encoder(*reinterpret_cast<Work*>(memory_), reinterpret_cast<KnownLocation*>(memory_ + sizeof(Work)),
                  location_slots, main, strings);
  encoder.mappings();
  {
    const profile::Reading now(wait);
    if (!now) {
      outcome_ = Outcome::Busy;
      return false;
    }
    if (now.sites().count() > sites || now.sites().frames() > frames) return true;
    const profile::Totals totals = now.totals();
    encoder.closed_modules();
    encoder.head(totals);
    for (const Site* site = now.sites().first(); site != nullptr; site = site->next)
      encoder.site(*site, totals.peak);
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
