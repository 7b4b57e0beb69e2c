// The options of the allocator, read once from SLUICE_* environment variables, and from SLUICE_OPTIONS=NAME=VALUE,...,
// which sets several. The table is options.def.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice {

// Types of option fields, by the names that options.def uses.
namespace option_type {
using boolean = bool;
using size = uint64_t;
using count = uint64_t;
using delay = uint64_t;    // milliseconds, or delay_never
using text = const char*;  // points into the environment, or a copy of it; never null
using signal = int;
}  // namespace option_type

// Larger than all delays that an option takes, and small enough to be added up.
inline constexpr uint64_t delay_never = uint64_t{1} << 40;

struct Options {
#define SLUICE_OPTION(field, name, type, fallback, minimum, maximum, description) option_type::type field = fallback;
#include "base/options.def"
#undef SLUICE_OPTION
};

extern constinit Options options;

// SLUICE_CACHE, where nothing else is asked for.
inline constexpr size_t usual_cache = Options{}.cache;

// Effects: fills `options` from the environment. Where an option has a variable of its own, that stands, whatever
// SLUICE_OPTIONS says. A variable SLUICE_* that is unknown or has a bad value gets one line on stderr and the default.
// Does nothing but take the defaults in a privileged program. Does not allocate. Returns: false when libc has not set
// the environment up yet, and then nothing was read.
bool read_options() noexcept;

// Effects: changes an option in a running process, by its name without SLUICE_: PURGE_DELAY, RETAIN or PROFILE_RATE.
// What reads them next finds the new value. Thread-safe.
enum class OptionChange : uint8_t {
  Done,
  Unknown,
  Fixed,     // it is read at the start alone
  BadValue,  // or out of range
  Never      // a delay from or to never
};
OptionChange change_option(const char* name, const char* value) noexcept;

// Reads a size as options have it: 4096, 64K. False when it is none.
bool read_size(const char* text, uint64_t* bytes) noexcept;

// What SLUICE_STATS asks for.
enum class StatsFormat : uint8_t { Text, Json, Prometheus };
struct StatsWish {
  bool understood;  // false: the text is none of the forms in options.def
  bool wanted;      // at exit
  StatsFormat format;
  const char* file;  // null: stderr
};
StatsWish stats_wish() noexcept;

// Whether the options ask this program for statistics.
bool options_want_statistics() noexcept;

// Whether they ask for exact counts, too, from the first call.
bool options_want_counts() noexcept;

}  // namespace sluice
