// See options.hpp.
#include "base/options.hpp"

#include <signal.h>
#include <unistd.h>

#include <string_view>

#include "base/print.hpp"
#include "base/program_name.hpp"
#include "os/memory.hpp"

namespace sluice {

constinit Options options{};

namespace {

using std::string_view;

constexpr string_view prefix = "SLUICE_";

// As substr(0, count), which could throw. Requires: text is that long.
string_view first(string_view text, size_t count) noexcept {
  return {text.data(), count};
}

// As starts_with, which is built on substr.
bool begins_with(string_view text, string_view start) noexcept {
  return text.size() >= start.size() && first(text, start.size()) == start;
}

char upper(char c) noexcept {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

bool same_ignoring_case(string_view a, string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (upper(a[i]) != upper(b[i])) return false;
  return true;
}

// Reads digits from the front of `text`. False when there are none or the number does not fit.
bool take_number(string_view& text, uint64_t& value) noexcept {
  size_t digits = 0;
  value = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    const uint64_t digit = static_cast<uint64_t>(text[digits] - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
    ++digits;
  }
  text.remove_prefix(digits);
  return digits != 0;
}

bool parse_boolean(const char* text, bool& value) noexcept {
  for (string_view yes : {"1", "on", "yes", "true"})
    if (same_ignoring_case(text, yes)) {
      value = true;
      return true;
    }
  for (string_view no : {"0", "off", "no", "false"})
    if (same_ignoring_case(text, no)) {
      value = false;
      return true;
    }
  return false;
}

bool parse_count(const char* text, uint64_t& value) noexcept {
  string_view rest = text;
  return take_number(rest, value) && rest.empty();
}

bool parse_delay(const char* text, uint64_t& value) noexcept {
  if (!same_ignoring_case(text, "never")) return parse_count(text, value) && value != delay_never;
  value = delay_never;
  return true;
}

bool parse_size(const char* text, uint64_t& value) noexcept {
  string_view rest = text;
  if (!take_number(rest, value)) return false;
  if (rest.empty()) return true;
  unsigned shift;
  switch (upper(rest.front())) {
    case 'K':
      shift = 10;
      break;
    case 'M':
      shift = 20;
      break;
    case 'G':
      shift = 30;
      break;
    case 'T':
      shift = 40;
      break;
    default:
      return false;
  }
  rest.remove_prefix(1);
  if (!rest.empty() && !same_ignoring_case(rest, "B") && !same_ignoring_case(rest, "iB")) return false;
  if (value > UINT64_MAX >> shift) return false;
  value <<= shift;
  return true;
}

bool parse_signal(const char* text, int& value) noexcept {
  struct Name {
    string_view name;
    int number;
  };
  static constexpr Name names[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"USR1", SIGUSR1},
                                   {"USR2", SIGUSR2}, {"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"WINCH", SIGWINCH},
                                   {"URG", SIGURG},   {"PROF", SIGPROF}, {"IO", SIGIO}};
  string_view name = text;
  uint64_t number = 0;
  if (take_number(name, number)) {
    if (!name.empty() || number > 64 || number == SIGKILL || number == SIGSTOP) return false;
    value = static_cast<int>(number);
    return true;
  }
  if (name.size() > 3 && same_ignoring_case(first(name, 3), "SIG")) name.remove_prefix(3);
  for (const Name& known : names)
    if (same_ignoring_case(name, known.name)) {
      value = known.number;
      return true;
    }
  return false;
}

bool parse_text(const char* text, const char*& value) noexcept {
  value = text;
  return true;
}

bool in_range(string_view type, uint64_t value, uint64_t minimum, uint64_t maximum) noexcept {
  if (type == "delay" && value == delay_never) return true;
  return maximum == 0 || (value >= minimum && value <= maximum);
}

void complain(string_view name, string_view value, const char* what) noexcept {
  char buffer[256];
  Print out(buffer, sizeof buffer, STDERR_FILENO);
  out.text("sluice: SLUICE_").text(name).character('=').text(value).text(": ").text(what).character('\n');
}

// Sets one option; `value` is null-terminated.
void set_option(string_view name, const char* value) noexcept {
#define SLUICE_OPTION(field, NAME, type, fallback, minimum, maximum, description)                      \
  if (name == #NAME) {                                                                                 \
    Options parsed = options;                                                                          \
    if (!parse_##type(value, parsed.field)) {                                                          \
      complain(name, value, "not a " #type ", the default is used");                                   \
    } else if (!in_range(#type, (uint64_t)(parsed.field), (uint64_t)(minimum), (uint64_t)(maximum))) { \
      complain(name, value, "out of range, the default is used");                                      \
    } else {                                                                                           \
      options = parsed;                                                                                \
    }                                                                                                  \
    return;                                                                                            \
  }
#include "base/options.def"
#undef SLUICE_OPTION
  complain(name, value, "no such option, it is ignored (`sluice options` lists them)");
}

}  // namespace

bool read_options() noexcept {
  char** variable = os::environment();
  if (variable == nullptr) return false;
  for (; *variable != nullptr; ++variable) {
    string_view entry = *variable;
    const size_t equals = entry.find('=');
    if (equals == string_view::npos || !begins_with(entry, prefix)) continue;
    if (os::is_privileged()) return true;
    set_option(string_view(entry.data() + prefix.size(), equals - prefix.size()), *variable + equals + 1);
  }
  return true;
}

StatsWish stats_wish() noexcept {
  struct Form {
    string_view name;
    StatsFormat format;
  };
  constexpr Form forms[] = {
      {"text", StatsFormat::Text}, {"json", StatsFormat::Json}, {"prometheus", StatsFormat::Prometheus}};
  const string_view text = options.stats;
  bool on = false;
  if (text.empty()) return {true, false, StatsFormat::Text, nullptr};
  if (parse_boolean(options.stats, on)) return {true, on, StatsFormat::Text, nullptr};
  for (const Form& form : forms) {
    if (!begins_with(text, form.name)) continue;
    if (text.size() == form.name.size()) return {true, true, form.format, nullptr};
    const char* const rest = options.stats + form.name.size();
    if (rest[0] == ':' && rest[1] != '\0') return {true, true, form.format, rest + 1};
  }
  return {false, false, StatsFormat::Text, nullptr};
}

bool options_want_statistics() noexcept {
  return (stats_wish().wanted || options.stats_signal != 0) && program_is_among(options.stats_program);
}

bool options_want_counts() noexcept {
  return options.stats_count && options_want_statistics();
}

}  // namespace sluice
