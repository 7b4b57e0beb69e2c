// A heap profile in memory: what a file of the format profile.proto holds, with references as indices. Open it to learn
// what a part of a profile is called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli::profile {

inline constexpr size_t none = ~size_t{0};

// What a value of a sample counts, as in ("inuse_space", "bytes").
struct ValueType {
  std::string name, unit;
  bool operator==(const ValueType&) const = default;
};

// A part of a file that is loaded at an address. The build id is in lower-case hexadecimal.
struct Mapping {
  uint64_t start = 0, limit = 0, offset = 0;
  std::string file = {}, build_id = {};
  bool has_functions = false;
};

struct Function {
  std::string name;         // readable: demangled
  std::string system_name;  // as the linker knows it
  std::string file = {};
  bool operator==(const Function&) const = default;
};

struct Line {
  size_t function = none;
  int64_t line = 0;  // 0: unknown
};

// An address in code. Its lines are the functions that are inlined there, the innermost first, and the one that has all
// of them; none while it is not resolved.
struct Location {
  uint64_t address = 0;
  size_t mapping = none;
  std::vector<Line> lines = {};
};

// A text, or a number with its unit.
struct Label {
  std::string key, text = {}, unit = {};
  int64_t number = 0;
};

struct Sample {
  std::vector<uint32_t> locations;  // the innermost first
  std::vector<int64_t> values;      // one of each type
  std::vector<Label> labels = {};
};

struct Profile {
  std::vector<ValueType> types = {};
  std::vector<Sample> samples = {};
  std::vector<Mapping> mappings = {};
  std::vector<Location> locations = {};
  std::vector<Function> functions = {};
  std::vector<std::string> comments = {};
  std::string default_type = {};
  ValueType period_type = {};
  int64_t period = 0, time_nanos = 0, duration_nanos = 0;

  // Returns: the place of a value in each sample, or `none`.
  size_t type_called(std::string_view name) const noexcept;

  // Returns: what follows "sluice.NAME=" in a comment.
  std::optional<std::string> fact(std::string_view name) const;
  // 0 where the fact is missing or is no number.
  uint64_t number_fact(std::string_view name) const;
};

// Effects: appends the samples of `other`, with all that they refer to. Returns: false, having changed nothing, when
// the values of the two are not the same ones or not sampled at one rate.
bool merge(Profile& into, const Profile& other);

}  // namespace sluice::cli::profile
