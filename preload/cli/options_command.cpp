// `sluice options`: the table of options as text, JSON, Markdown and a part of the manual page. Open it to
// change how it is printed; what is in it comes from base/options.def.
#include <algorithm>
#include <string>
#include <string_view>

#include <unistd.h>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "measure/tables.hpp"
#include "measure/terminal.hpp"
#include "option_table.hpp"

namespace sluice::cli {
namespace {

constexpr size_t line_width = 100, indentation = 4;

void print_text() {
  const size_t terminal = bench::terminal_columns(STDOUT_FILENO);
  const size_t columns = terminal > 2 * indentation ? std::min(terminal, line_width) : line_width;
  for (const std::string_view line :
       {"Options of the allocator. Each is an environment variable; `sluice run --option NAME=VALUE` sets it.",
        "One variable can set several: SLUICE_OPTIONS=NAME=VALUE,NAME=VALUE, named without SLUICE_. The variable of an "
        "option counts more."})
    fmt::print("{}\n", bench::wrapped(line, columns));
  fmt::print("Sizes are in bytes and take K, M, G, T (powers of 1024).\n\n");
  size_t width = 0;
  for (const OptionRow& row : option_table())
    width = std::max(width, row.variable().size() + 2);
  fmt::print("{:<{}}{:<10}{:<10}{}\n", "variable", width, "type", "default", "values");
  for (const OptionRow& row : option_table()) {
    fmt::print("{:<{}}{:<10}{:<10}{}\n", row.variable(), width, type_name(row.type), default_text(row),
               range_text(row));
    fmt::print("{:{}}{}\n", "", indentation, bench::wrapped(row.description, columns - indentation, indentation));
  }
}

void print_json() {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const OptionRow& row : option_table()) {
    nlohmann::ordered_json entry{{"name", row.variable()}, {"type", type_name(row.type)}};
    if (row.type == OptionType::text)
      entry["default"] = row.fallback_text;
    else if (row.type == OptionType::boolean)
      entry["default"] = row.fallback != 0;
    else
      entry["default"] = row.fallback;
    if (row.type == OptionType::size || row.type == OptionType::count || row.type == OptionType::delay) {
      entry["minimum"] = row.minimum;
      entry["maximum"] = row.maximum;
    }
    entry["description"] = row.description;
    rows.push_back(std::move(entry));
  }
  fmt::print("{}\n", rows.dump(2));
}

std::string replaced(std::string_view text, char c, std::string_view replacement) {
  std::string result;
  for (const char each : text)
    if (each == c)
      result += replacement;
    else
      result += each;
  return result;
}

void print_markdown() {
  fmt::print("| variable | type | default | values | what it does |\n|---|---|---|---|---|\n");
  for (const OptionRow& row : option_table())
    fmt::print("| `{}` | {} | {} | {} | {} |\n", row.variable(), type_name(row.type), default_text(row),
               range_text(row), replaced(row.description, '|', "\\|"));
}

// No line of running text starts with a control character of roff, because each starts with a word of ours.
void print_man() {
  for (const OptionRow& row : option_table()) {
    const std::string description = replaced(replaced(row.description, '\\', "\\e"), '-', "\\-");
    fmt::print(".TP\n.B {}\n({}; default {}; {})\n.br\n\\&{}.\n", row.variable(), type_name(row.type),
               default_text(row), range_text(row), description);
  }
}

}  // namespace

void print_options(OptionFormat format) {
  switch (format) {
    case OptionFormat::text:
      return print_text();
    case OptionFormat::json:
      return print_json();
    case OptionFormat::markdown:
      return print_markdown();
    case OptionFormat::man:
      return print_man();
  }
}

}  // namespace sluice::cli
