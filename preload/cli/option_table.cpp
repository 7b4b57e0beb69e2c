// The table of options, its values in words, and the checks of names and values. Open it when `sluice run
// --option` takes or refuses something that it should not.
#include "option_table.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <optional>
#include <type_traits>
#include <vector>

#include <fmt/core.h>

#include "command.hpp"
#include "measure/names.hpp"

namespace sluice::cli {
namespace {

template <typename T>
constexpr uint64_t number_of(T fallback) {
  if constexpr (std::is_convertible_v<T, std::string_view>)
    return 0;
  else
    return static_cast<uint64_t>(fallback);
}

template <typename T>
constexpr std::string_view text_of(T fallback) {
  if constexpr (std::is_convertible_v<T, std::string_view>)
    return fallback;
  else
    return {};
}

constexpr OptionRow table[] = {
#define SLUICE_OPTION(field, name, type, fallback, minimum, maximum, description) \
  {#name, OptionType::type, number_of(fallback), text_of(fallback), minimum, maximum, description},
#include "base/options.def"
#undef SLUICE_OPTION
};

constexpr std::string_view size_suffixes = "KMGT";

// The signals that the library knows by name. Any other but KILL and STOP can be given by its number.
constexpr std::string_view signal_names[] = {"HUP",  "INT",   "QUIT", "USR1", "USR2", "ALRM",
                                             "TERM", "WINCH", "URG",  "PROF", "IO"};
constexpr uint64_t max_signal = 64;

char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

std::string in_upper_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), upper);
  return result;
}

std::string option_key(std::string_view name) {
  std::string key = in_upper_case(name);
  std::replace(key.begin(), key.end(), '-', '_');
  if (key.starts_with("SLUICE_")) key.erase(0, 7);
  return key;
}

bool is_boolean(std::string_view text) {
  constexpr std::string_view accepted[] = {"0", "1", "OFF", "ON", "NO", "YES", "FALSE", "TRUE"};
  return std::find(std::begin(accepted), std::end(accepted), in_upper_case(text)) != std::end(accepted);
}

std::optional<uint64_t> parse_count(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint64_t> parse_size(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<uint64_t> number = parse_count(text.substr(0, digits));
  const std::string unit = in_upper_case(text.substr(digits));
  if (unit.empty()) return number;
  const size_t suffix = size_suffixes.find(unit.front());
  const std::string_view tail = std::string_view(unit).substr(1);
  if (!number || suffix == std::string_view::npos || (!tail.empty() && tail != "B" && tail != "IB"))
    return std::nullopt;
  const unsigned shift = 10 * static_cast<unsigned>(suffix + 1);
  if (*number > UINT64_MAX >> shift) return std::nullopt;
  return *number << shift;
}

bool is_signal(std::string_view text) {
  if (const auto number = parse_count(text)) return *number <= max_signal && *number != SIGKILL && *number != SIGSTOP;
  std::string name = in_upper_case(text);
  if (name.size() > 3 && name.starts_with("SIG")) name.erase(0, 3);
  return std::find(std::begin(signal_names), std::end(signal_names), name) != std::end(signal_names);
}

}  // namespace

std::span<const OptionRow> option_table() noexcept {
  return table;
}

std::string_view type_name(OptionType type) noexcept {
  switch (type) {
    case OptionType::boolean:
      return "boolean";
    case OptionType::size:
      return "size";
    case OptionType::count:
      return "count";
    case OptionType::delay:
      return "delay";
    case OptionType::text:
      return "text";
    case OptionType::signal:
      return "signal";
  }
  return "";
}

std::string value_text(OptionType type, uint64_t value) {
  if (type == OptionType::boolean) return value != 0 ? "on" : "off";
  if (type != OptionType::size) return std::to_string(value);
  size_t power = 0;
  while (value != 0 && value % 1024 == 0 && power < size_suffixes.size())
    value /= 1024, ++power;
  return power == 0 ? std::to_string(value) : fmt::format("{}{}", value, size_suffixes[power - 1]);
}

std::string default_text(const OptionRow& row) {
  if (row.type == OptionType::text) return row.fallback_text.empty() ? "none" : std::string(row.fallback_text);
  if (row.type == OptionType::signal && row.fallback == 0) return "none";
  return value_text(row.type, row.fallback);
}

std::string range_text(const OptionRow& row) {
  switch (row.type) {
    case OptionType::boolean:
      return "on, off";
    case OptionType::text:
      return "any";
    case OptionType::signal:
      return "name, number";
    case OptionType::size:
    case OptionType::count:
    case OptionType::delay:
      break;
  }
  return fmt::format("{} to {}{}", value_text(row.type, row.minimum), value_text(row.type, row.maximum),
                     row.type == OptionType::delay ? ", never" : "");
}

const OptionRow& find_option(std::string_view name) {
  const std::string key = option_key(name);
  std::vector<std::string> names;
  for (const OptionRow& row : table) {
    if (row.name == key) return row;
    names.emplace_back(row.name);
  }
  throw CommandError(exit_usage,
                     fmt::format("unknown option '{}'{} (see `sluice options`)", name, bench::suggestion(key, names)));
}

void check_value(const OptionRow& row, std::string_view value) {
  const auto refuse = [&](std::string_view expected) {
    throw CommandError(exit_usage, fmt::format("option {}: bad value '{}': expected {}", row.name, value, expected));
  };
  switch (row.type) {
    case OptionType::text:
      if (row.name == "STATS" && !is_stats_format(value))
        refuse("text, json or prometheus, or one of these with :FILE");
      return;
    case OptionType::boolean:
      if (!is_boolean(value)) refuse("on or off");
      return;
    case OptionType::signal:
      if (!is_signal(value)) refuse("a signal's name or number, as USR2");
      return;
    case OptionType::delay:
      if (in_upper_case(value) == "NEVER") return;
      [[fallthrough]];
    case OptionType::size:
    case OptionType::count: {
      const auto number = row.type == OptionType::size ? parse_size(value) : parse_count(value);
      if (!number || *number < row.minimum || *number > row.maximum) refuse(range_text(row));
      return;
    }
  }
}

bool is_stats_format(std::string_view text) {
  for (const std::string_view kind : {"text", "json", "prometheus"}) {
    if (text == kind) return true;
    if (text.starts_with(kind) && text[kind.size()] == ':') return text.size() > kind.size() + 1;
  }
  return text.empty() || is_boolean(text);
}

}  // namespace sluice::cli
