// See options.hpp.
#include "base/options.hpp"

#include <signal.h>
#include <unistd.h>

#include <string_view>

#include "base/print.hpp"
#include "base/program_name.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"

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

constexpr string_view list_variable = "OPTIONS";

// How complaints begin: a variable, or one of those that SLUICE_OPTIONS lists.
constexpr const char* alone = "SLUICE_";
constexpr const char* in_list = "SLUICE_OPTIONS: ";

void complain(const char* origin, const char* entry, const char* what) noexcept {
  char buffer[256];
  Print out(buffer, sizeof buffer, STDERR_FILENO);
  out.text("sluice: ").text(origin).text(entry).text(": ").text(what).character('\n');
}

// Sets one option. `entry` is NAME=VALUE; a text is kept where it lies.
void set_option(const char* origin, const char* entry) noexcept {
  const size_t equals = string_view(entry).find('=');
  if (equals == string_view::npos) return complain(origin, entry, "no value, it is ignored");
  const string_view name(entry, equals);
  const char* const value = entry + equals + 1;
#define SLUICE_OPTION(field, NAME, type, fallback, minimum, maximum, description)                                  \
  if (name == #NAME) {                                                                                             \
    option_type::type parsed = fallback;                                                                           \
    const bool understood = parse_##type(value, parsed);                                                           \
    const bool good = understood && in_range(#type, (uint64_t)(parsed), (uint64_t)(minimum), (uint64_t)(maximum)); \
    if (!understood) complain(origin, entry, "not a " #type ", the default is used");                              \
    if (understood && !good) complain(origin, entry, "out of range, the default is used");                         \
    options.field = good ? parsed : option_type::type{fallback};                                                   \
    return;                                                                                                        \
  }
#include "base/options.def"
#undef SLUICE_OPTION
  complain(origin, entry, "no such option, it is ignored (`sluice options` lists them)");
}

// Returns: whether the variable is SLUICE_OPTIONS.
bool is_list(const char* entry) noexcept {
  const string_view text(entry);
  return begins_with(text, list_variable) && text.size() > list_variable.size() && text[list_variable.size()] == '=';
}

// NAME=VALUE,NAME=VALUE: taken apart in a copy, which stays, since texts point into it.
void read_list(const char* list) noexcept {
  const size_t size = string_view(list).size() + 1;
  auto* const copy = static_cast<char*>(os::map_scratch(size));
  if (copy == nullptr) return complain(in_list, list, "no memory, it is ignored");
  __builtin_memcpy(copy, list, size);
  char* entry = copy;
  for (size_t i = 0; i < size; ++i) {
    if (copy[i] != ',' && copy[i] != '\0') continue;
    copy[i] = '\0';
    if (*entry != '\0') set_option(in_list, entry);
    entry = copy + i + 1;
  }
}

// Requires: no variable of ours stands before this one.
void read_lists(char** variable) noexcept {
  for (; *variable != nullptr; ++variable) {
    if (!begins_with(*variable, prefix) || !is_list(*variable + prefix.size())) continue;
    read_list(*variable + prefix.size() + list_variable.size() + 1);
  }
}

}  // namespace

bool read_options() noexcept {
  char** variable = os::environment();
  if (variable == nullptr) return false;
  bool lists_are_read = false;
  for (; *variable != nullptr; ++variable) {
    const string_view entry = *variable;
    if (!begins_with(entry, prefix) || entry.find('=') == string_view::npos) continue;
    if (os::is_privileged()) return true;
    // First, so that what a variable of its own says stands.
    if (!lists_are_read) read_lists(variable);
    lists_are_read = true;
    if (!is_list(*variable + prefix.size())) set_option(alone, *variable + prefix.size());
  }
  return true;
}

OptionChange change_option(const char* name, const char* value) noexcept {
  struct Changeable {
    string_view name;
    uint64_t* value;
    uint64_t minimum, maximum;
    bool is_delay;
  };
#define SLUICE_OPTION(field, NAME, type, fallback, low, high, description) \
  constexpr uint64_t field##_low [[maybe_unused]] = low, field##_high [[maybe_unused]] = high;
#include "base/options.def"
#undef SLUICE_OPTION
  const Changeable all[] = {{"PURGE_DELAY", &options.purge_delay, purge_delay_low, purge_delay_high, true},
                            {"RETAIN", &options.retain, retain_low, retain_high, false},
                            {"PROFILE_RATE", &options.profile_rate, profile_rate_low, profile_rate_high, false}};
  for (const Changeable& option : all) {
    if (option.name != name) continue;
    uint64_t parsed = 0;
    if (!(option.is_delay ? parse_delay(value, parsed) : parse_size(value, parsed))) return OptionChange::BadValue;
    if (option.is_delay && (parsed == delay_never || *option.value == delay_never)) return OptionChange::Never;
    if (parsed < option.minimum || parsed > option.maximum) return OptionChange::BadValue;
    __atomic_store_n(option.value, parsed, __ATOMIC_RELAXED);  // others read it as a plain word
    return OptionChange::Done;
  }
#define SLUICE_OPTION(field, NAME, ...) \
  if (string_view(name) == #NAME) return OptionChange::Fixed;
#include "base/options.def"
#undef SLUICE_OPTION
  return OptionChange::Unknown;
}

bool read_size(const char* text, uint64_t* bytes) noexcept {
  return parse_size(text, *bytes);
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
