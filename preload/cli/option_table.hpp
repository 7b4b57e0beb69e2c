// The table of options as data: what base/options.def says, for the command. Open it to look options up by
// name or to check a value.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sluice::cli {

enum class OptionType { boolean, size, count, delay, text, signal };

struct OptionRow {
  std::string_view name;  // without SLUICE_
  OptionType type;
  uint64_t fallback;               // of all types but text
  std::string_view fallback_text;  // of text
  uint64_t minimum;
  uint64_t maximum;
  std::string_view description;

  std::string variable() const { return "SLUICE_" + std::string(name); }
};

std::span<const OptionRow> option_table() noexcept;

std::string_view type_name(OptionType type) noexcept;

// Returns: the value in the shortest form that the parser of options takes: 64K, on, 1000.
std::string value_text(OptionType type, uint64_t value);

// Returns: the default as value_text, or "none" where there is nothing to set.
std::string default_text(const OptionRow& row);

// Returns: the values that the option takes, in words.
std::string range_text(const OptionRow& row);

// Effects: finds an option by a name in any case, with '-' or '_', with or without SLUICE_.
// Throws: CommandError (usage) with the nearest name as a suggestion, if one is near.
const OptionRow& find_option(std::string_view name);

// Effects: checks a value. Throws: CommandError (usage) when the option does not take it.
void check_value(const OptionRow& row, std::string_view value);

// Returns: whether text is text, json or prometheus, or one of these with :FILE, or on for text, or off or empty for
// none.
bool is_stats_format(std::string_view text);

}  // namespace sluice::cli
