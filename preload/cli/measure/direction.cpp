// Reads the words around a figure. Open it with direction.hpp.
#include "direction.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <regex>
#include <string_view>
#include <utility>

namespace bench {
namespace {

constexpr const char* time_units =
    "ns|nsecs?|nanoseconds?|us|µs|μs|usecs?|microseconds?|ms|msecs?|millis|milliseconds?|s|secs?|seconds?|mins?|"
    "minutes?";

std::regex words(const std::string& expression) {
  return std::regex(expression, std::regex::ECMAScript | std::regex::optimize);
}

// A label of several words is split at what is no letter, so that "p99_ms" holds "ms".
std::string lowered(std::string text) {
  for (char& letter : text)
    letter = letter == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

/// What a line's part says of the figure beside it: as its unit, or also as its name.
Better told_by(const std::string& text, bool is_name) {
  static const std::regex harm = words(
      "\\b(errors?|fail\\w*|time-?outs?|faults?|miss(es|ed)?|lost|loss|drop(s|ped)?|retr(y|ies)|collisions?|stalls?|"
      "aborts?|aborted|reject\\w*)\\b");
  static const std::regex time_per = words(std::string("(^|[^a-z'])(") + time_units + "|time)\\s*(/|per\\b)\\s*[a-z]");
  static const std::regex per_time = words(std::string("(/|\\bper)\\s*(") + time_units + ")(?![a-z])");
  static const std::regex rate =
      words("\\b(tps|qps|rps|iops|ops|[mg]?flops|mips|fps|[kmgt]?i?bps|throughput|bandwidth|hits|speed ?up|score)\\b");
  static const std::regex time = words(std::string("(^|[^a-z'])(") + time_units + ")(?![a-z])");
  static const std::regex cost = words(
      "\\b(latency|latencies|time|duration|elapsed|took|takes|delay|waits?|waited|pauses?|response|rtt|lag|jitter|"
      "runtime|"
      "memory|rss)\\b");
  if (std::regex_search(text, harm)) return Better::less;
  // "per second" of a "time per request" is none; "seconds per request" is a time.
  if (std::regex_search(text, per_time)) return Better::more;
  if (std::regex_search(text, time_per)) return Better::less;
  if (std::regex_search(text, rate)) return Better::more;
  if (std::regex_search(text, time) || (is_name && std::regex_search(text, cost))) return Better::less;
  return Better::unknown;
}

/// The end of a line's part that belongs to the figure behind it: not what another figure before it is called, or is
/// counted in.
std::string label_before(const std::string& text) {
  static const std::regex other_figure =
      words(std::string("(^|[\\s=:(])[0-9][0-9.,]*\\s*((") + time_units + "|%)(?![a-z]))?");
  std::string label = text.substr(0, text.find_last_not_of(" \t:=") + 1);
  if (const std::size_t cut = label.find_last_of(",;|"); cut != std::string::npos) label.erase(0, cut + 1);
  std::smatch found;
  while (std::regex_search(label, found, other_figure))
    label = found.suffix();
  return label;
}

/// The start of a line's part that belongs to the figure before it.
std::string unit_after(const std::string& text) {
  const std::size_t end = std::min(text.find_first_of(",;|:=0123456789"), text.size());
  return text.substr(0, end);
}

/// The end of the piece of a regular expression that begins at `start`: an escape, a class in brackets, or one
/// character.
std::size_t end_of_piece(const std::string& expression, std::size_t start) {
  std::size_t end = start + (expression[start] == '\\' ? 2 : 1);
  if (expression[start] == '[') {
    while (end < expression.size() && expression[end] != ']')
      end += expression[end] == '\\' ? 2 : 1;
    ++end;
  }
  return std::min(end, expression.size());
}

/// The text that a piece stands for; none for a class, an anchor or a repetition, a blank for an escape like \s.
std::string_view text_of_piece(std::string_view piece) {
  if (piece.front() == '\\') {
    const std::string_view escaped = piece.substr(1);
    return escaped.empty() || std::isalnum(static_cast<unsigned char>(escaped.front())) != 0 ? " " : escaped;
  }
  const bool is_syntax = std::string_view("[^$*+?.|").find(piece.front()) != std::string_view::npos;
  return is_syntax ? std::string_view() : piece;
}

}  // namespace

Better better_direction(const std::string& before, const std::string& after) {
  const Better by_unit = told_by(unit_after(lowered(after)), false);
  return by_unit != Better::unknown ? by_unit : told_by(label_before(lowered(before)), true);
}

Unit unit_of(const std::string& after) {
  // Only what stands at the figure without a blank is chosen with it.
  static const std::array<std::pair<std::regex, Unit>, 8> units = {{{words("^ns(?![A-Za-z])"), {true, 1e-9}},
                                                                    {words("^(us|µs|μs)(?![A-Za-z])"), {true, 1e-6}},
                                                                    {words("^ms(?![A-Za-z])"), {true, 1e-3}},
                                                                    {words("^s(?![A-Za-z])"), {true, 1}},
                                                                    {words("^[kK]([bB])?(?![A-Za-z])"), {false, 1e3}},
                                                                    {words("^M([bB])?(?![A-Za-z])"), {false, 1e6}},
                                                                    {words("^G([bB])?(?![A-Za-z])"), {false, 1e9}},
                                                                    {words("^T([bB])?(?![A-Za-z])"), {false, 1e12}}}};
  for (const auto& [expression, unit] : units)
    if (std::regex_search(after, expression)) return unit;
  return {};
}

std::string figure_title(const std::string& expression) {
  constexpr std::size_t longest = 40;
  std::string title;
  int depth = 0;  // of groups
  bool is_figure_shown = false;
  for (std::size_t start = 0, end = 0; start < expression.size(); start = end) {
    end = end_of_piece(expression, start);
    const std::string_view piece(expression.data() + start, end - start);
    if (piece == "(") {
      const bool captures = expression.compare(end, 1, "?") != 0;
      if (depth == 0 && captures && !std::exchange(is_figure_shown, true)) title += "…";
      ++depth;
    } else if (piece == ")") {
      --depth;
    } else if (depth == 0) {
      title += text_of_piece(piece);
    }
  }
  static const std::regex blanks = words("\\s+"), ends = words("^[\\s:=]+|[\\s:=]*…?[\\s:=]*$");
  title = std::regex_replace(std::regex_replace(title, blanks, " "), ends, "");
  static const std::regex start = words("^…\\s*");
  title = std::regex_replace(title, start, "");
  if (title.empty() || title.size() > longest) return {};
  return title;
}

}  // namespace bench
