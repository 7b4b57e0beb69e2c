// The arguments that scenario programs take. Open it to add one to all of them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string_view>

namespace scenario {

struct Arguments {
  std::uint64_t ops;
  std::uint64_t seed = 1;
  std::uint64_t threads = 1;
  std::uint64_t quiet_milliseconds = 0;  // of rest after the work, before memory is read once more
};

/// An argument that takes one of a few words. The first is the default.
class Choice {
 public:
  /// `words` are separated by bars.
  Choice(const char* name, std::string_view words) : name_(name), words_(words), chosen_(first_of(words)) {}

  const char* name() const { return name_; }
  std::string_view words() const { return words_; }
  std::string_view chosen() const { return chosen_; }

  /// Returns: whether `text` is one of the words; if so, it is the chosen one.
  bool choose(std::string_view text) {
    for (std::string_view rest = words_; !rest.empty();) {
      const std::string_view word = first_of(rest);
      if (word == text) {
        chosen_ = word;
        return true;
      }
      rest.remove_prefix(word.size() < rest.size() ? word.size() + 1 : word.size());
    }
    return false;
  }

 private:
  static std::string_view first_of(std::string_view words) { return words.substr(0, words.find('|')); }

  const char* name_;
  std::string_view words_;
  std::string_view chosen_;
};

constexpr std::uint64_t most_ops = 4'000'000'000;
constexpr std::uint64_t most_threads = 256;

/// What a scenario's command line is like.
struct CommandLine {
  const char* unit;  // what one operation is
  std::uint64_t ops;
  std::uint64_t least_ops = 1;  // the smallest number that makes sense
  std::initializer_list<Choice*> choices = {};
  std::uint64_t threads = 0;  // 0: the workload has a number of its own, and takes none
  std::uint64_t least_threads = 1;
};

/// An argument that takes a whole number.
struct Number {
  const char* name;
  std::uint64_t* value;
  std::uint64_t least, most;
};

[[noreturn]] inline void print_help(const char* program, const CommandLine& line) {
  std::printf("Usage: %s [--ops N] [--seed N]%s [--quiesce MS]", program, line.threads != 0 ? " [--threads N]" : "");
  for (const Choice* const choice : line.choices)
    std::printf(" [%s %.*s]", choice->name(), static_cast<int>(choice->words().size()), choice->words().data());
  std::printf("\n  --ops N       %s (default %llu)\n  --seed N      of the workload\n", line.unit,
              static_cast<unsigned long long>(line.ops));
  if (line.threads != 0)
    std::printf("  --threads N   among which they are divided (default %llu)\n",
                static_cast<unsigned long long>(line.threads));
  std::printf("  --quiesce MS  rest so long after the work, and say what memory is resident then\n");
  std::exit(0);
}

inline void read_number(const char* program, const Number& number, const char* text) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0' || value < number.least || value > number.most) {
    std::fprintf(stderr, "%s: %s needs a whole number from %llu to %llu, not '%s'\n", program, number.name,
                 static_cast<unsigned long long>(number.least), static_cast<unsigned long long>(number.most), text);
    std::exit(2);
  }
  *number.value = value;
}

/// Reads the arguments. Ends the program on `--help` and on anything else.
inline Arguments parse_arguments(int argc, char** argv, const CommandLine& line) {
  constexpr std::uint64_t longest_rest = 600'000;
  Arguments arguments{line.ops};
  arguments.threads = line.threads != 0 ? line.threads : 1;
  const Number numbers[] = {{"--ops", &arguments.ops, line.least_ops, most_ops},
                            {"--seed", &arguments.seed, 0, most_ops},
                            {"--quiesce", &arguments.quiet_milliseconds, 0, longest_rest},
                            {"--threads", &arguments.threads, line.least_threads, most_threads}};
  for (int i = 1; i < argc; ++i) {
    const char* const name = argv[i];
    if (std::strcmp(name, "--help") == 0) print_help(argv[0], line);
    const char* const text = i + 1 < argc ? argv[++i] : "";
    bool is_known = false;
    for (Choice* const choice : line.choices) {
      if (std::strcmp(name, choice->name()) != 0) continue;
      is_known = true;
      if (choice->choose(text)) continue;
      std::fprintf(stderr, "%s: %s needs one of %.*s, not '%s'\n", argv[0], name,
                   static_cast<int>(choice->words().size()), choice->words().data(), text);
      std::exit(2);
    }
    for (const Number& number : numbers) {
      if (std::strcmp(name, number.name) != 0 || (number.value == &arguments.threads && line.threads == 0)) continue;
      is_known = true;
      read_number(argv[0], number, text);
    }
    if (is_known) continue;
    std::fprintf(stderr, "%s: unknown argument '%s' (see --help)\n", argv[0], name);
    std::exit(2);
  }
  return arguments;
}

/// The same for a workload without a number of threads to choose.
inline Arguments parse_arguments(int argc, char** argv, const char* unit, std::uint64_t default_ops,
                                 std::uint64_t least = 1, std::initializer_list<Choice*> choices = {}) {
  return parse_arguments(argc, argv, CommandLine{unit, default_ops, least, choices});
}

}  // namespace scenario
