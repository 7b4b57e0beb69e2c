// Writes the options as parts of a manual page and as completion scripts. Open it with documents.hpp.
#include "documents.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
namespace sluice::cli {
namespace {

using Words = std::vector<std::string>;

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// As one word of a shell.
std::string quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  const auto is_shown = [](const CLI::App* each) { return !each->get_group().empty(); };
  return app.get_subcommands(is_shown);
}

// Those that are no positional ones.
std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  return app.get_options([](const CLI::Option* each) { return !each->get_positional(); });
}

const CLI::App& subcommand(const CLI::App& app, const std::string& name) {
  const std::vector<const CLI::App*> all = subcommands_of(app);
  return **std::find_if(all.begin(), all.end(), [&](const CLI::App* each) { return each->get_name() == name; });
}

// "-o" and "--option", the short one first.
Words names_of(const CLI::Option& option) {
  Words names;
  for (const std::string& each : option.get_snames())
    names.push_back("-" + each);
  for (const std::string& each : option.get_lnames())
    names.push_back("--" + each);
  return names;
}

bool has_separate_value(const CLI::Option& option) {
  const std::string value = value_name(option);
  return !value.empty() && value.front() != '[';  // "[=FORMAT]" stands behind the name or not at all
}

bool is_file_pair(const std::string& value) {
  return value == "OLD NEW" || value == "BEFORE AFTER";
}

bool takes_file(const CLI::Option& option) {
  const std::string value = value_name(option);
  return value == "FILE" || value == "PATH" || is_file_pair(value);
}

bool takes_files(const CLI::App& app) {
  return app.get_name() == "stats" || app.get_name() == "profile" || app.get_name() == "leaks";
}

// What an option takes that is neither a file nor one of a few words.
constexpr std::string_view allocators = "system sluice secure mimalloc jemalloc tcmalloc";
constexpr std::string_view thread_counts = "1 2 4 8 16 32 64";
constexpr std::string_view allocator_options =
    "$(sluice options 2>/dev/null | sed -n 's/^SLUICE_\\([A-Z_]*\\) .*/\\1=/p')";
constexpr std::string_view scenarios = "$(sluice bench list 2>/dev/null | sed -n '2,$s/ .*//p')";

constexpr std::string_view attach_requests = "stats profile purge set", profile_requests = "start dump stop";
// What follows depends on what stands before: a process, a request, its part, a file.
constexpr const char* bash_attach =
    "case $COMP_CWORD:${COMP_WORDS[3]} in 2:*) compgen -W \"$(ls /proc | grep -x \"[0-9]*\")\" -- \"$word\" ;; "
    "3:*) compgen -W \"stats profile purge set\" -- \"$word\" ;; "
    "4:profile) compgen -W \"start dump stop\" -- \"$word\" ;; "
    "4:set) compgen -W \"PURGE_DELAY= RETAIN= PROFILE_RATE=\" -- \"$word\" ;; *) compgen -f -- \"$word\" ;; esac";

// The words of which a list is made, or of which one is the value; empty where there are none to offer.
std::string_view words_of(const CLI::Option& option) {
  const std::string& name = option.get_lnames().front();
  if (name == "threads") return thread_counts;
  return value_name(option) == "LIST" || name == "baseline" ? allocators : "";
}

// --- manual page

std::string in_roff(const std::string& text) {
  return replaced(replaced(text, "\\", "\\e"), "-", "\\-");
}

// Each line of usage in bold, its variable words in italics.
void print_synopsis(const CLI::App& app) {
  bool is_first = true;
  for (const CLI::App* const each : subcommands_of(app)) {
    const auto& formatter = dynamic_cast<const CLI::Formatter&>(*each->get_formatter());
    std::string usage = replaced(formatter.make_usage(each, ""), "Usage: ", "       ");
    for (std::size_t end = 0; (end = usage.find('\n')) != std::string::npos; usage.erase(0, end + 1)) {
      const std::size_t begin = usage.find_first_not_of(' ');
      if (begin >= end) continue;
      fmt::print("{}.B {}\n", is_first ? "" : ".br\n", in_roff(usage.substr(begin, end - begin)));
      is_first = false;
    }
  }
}

// No line of running text starts with a control character of roff: "\&" stands before each.
void print_roff_options(const CLI::App& app) {
  for (const CLI::Option* const option : options_of(app)) {
    std::string names;
    for (const std::string& each : names_of(*option))
      names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", in_roff(each));
    const std::string value = value_name(*option);
    const bool is_apart = has_separate_value(*option);
    fmt::print(".TP\n{}{}{}\n\\&{}.\n", names, is_apart ? " " : "",
               value.empty() ? "" : fmt::format("\\fI{}\\fR", in_roff(value)), in_roff(option_text(*option)));
  }
}

// --- bash

std::string bash_values(const CLI::Option& option) {
  const std::string value = value_name(option);
  if (takes_file(option)) return "compgen -f -- \"$word\"";
  if (value == "LIST")  // what stands before the last comma stays
    return fmt::format(R"(compgen -P "${{word%"${{word##*,}}"}}" -W '{}' -- "${{word##*,}}")", words_of(option));
  if (option.get_lnames().front() == "baseline") return fmt::format("compgen -W '{}' -- \"$word\"", allocators);
  if (value == "NAME=VALUE") return fmt::format("compgen -W \"{}\" -- \"$word\"", allocator_options);
  if (value == "COMMAND") return "compgen -c -- \"$word\"";
  return ":";
}

void print_bash_case(const CLI::App& app) {
  std::string options, values, cases;
  for (const CLI::Option* const option : options_of(app)) {
    std::string pattern;
    for (const std::string& name : names_of(*option)) {
      options += fmt::format("{}{}", options.empty() ? "" : " ", name);
      pattern += fmt::format("{}{}", pattern.empty() ? "" : " | ", name);
      if (has_separate_value(*option)) values += fmt::format(" {}", name);
    }
    if (has_separate_value(*option))
      cases += fmt::format("        {}) value={} ;;\n", pattern, quoted(bash_values(*option)));
  }
  fmt::print("    {})\n      options='{}'\n      with_value='{} '\n      case $previous in\n{}      esac\n",
             app.get_name(), options, values, cases);
  if (app.get_name() == "run" || app.get_name() == "compare" || app.get_name() == "advise")
    fmt::print("      program=yes\n");
  if (takes_files(app)) fmt::print("      words='compgen -f -- \"$word\"'\n");
  if (app.get_name() == "attach") fmt::print("      words={}\n", quoted(bash_attach));
  if (app.get_name() == "bench")
    fmt::print("      if ((COMP_CWORD == 2)); then options=\"list run $options\"; fi\n      words={}\n",
               quoted(fmt::format("compgen -W \"{}\" -- \"$word\"", scenarios)));
  fmt::print("      ;;\n");
}

void print_bash(const CLI::App& app) {
  std::string subcommands;
  for (const CLI::App* const each : subcommands_of(app))
    subcommands += each->get_name() + " ";
  fmt::print(R"(# Completion for bash, written by `sluice document bash`.
_sluice() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local options= with_value= value= words=: program= i
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W '{}--help --version' -- "$word")
    return
  fi
  case ${{COMP_WORDS[1]}} in
)",
             subcommands);
  for (const CLI::App* const each : subcommands_of(app))
    print_bash_case(*each);
  fmt::print(R"(  esac
  if [[ $program ]]; then
    for ((i = 2; i < COMP_CWORD; ++i)); do
      if [[ ${{COMP_WORDS[i]}} == -- ]]; then ((++i)); break; fi
      [[ ${{COMP_WORDS[i]}} == -* ]] || break
      if [[ $with_value == *" ${{COMP_WORDS[i]}} "* ]]; then ((++i)); fi
    done
    if ((i < COMP_CWORD)) && declare -F _command_offset >/dev/null; then
      _command_offset "$i"
      return
    fi
    words='compgen -c -- "$word"'
    if ((i < COMP_CWORD)); then words='compgen -f -- "$word"' value= word=${{word#-}}; fi
  fi
  if [[ $value ]]; then
    mapfile -t COMPREPLY < <(eval "$value")
  elif [[ $word == -* || $options == list* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  else
    mapfile -t COMPREPLY < <(eval "$words")
  fi
}}
complete -o bashdefault -F _sluice sluice
)");
}

// --- zsh

// Inside single quotes and the brackets of a specification.
std::string in_zsh(const std::string& text) {
  return replaced(replaced(replaced(replaced(text, "[", "\\["), "]", "\\]"), ":", "\\:"), "'", "'\\''");
}

std::string zsh_values(const CLI::Option& option) {
  const std::string value = value_name(option);
  if (takes_file(option)) return "_files";
  if (!words_of(option).empty()) return fmt::format("({})", words_of(option));
  if (value == "COMMAND") return "_cmdstring";
  return " ";
}

void print_zsh_case(const CLI::App& app) {
  const std::string& name = app.get_name();
  fmt::print("    {})\n      _arguments -S", name);
  for (const CLI::Option* const option : options_of(app)) {
    for (const std::string& each : names_of(*option)) {
      fmt::print(" \\\n        '*{}[{}]", each, in_zsh(option_text(*option)));
      if (has_separate_value(*option)) fmt::print(":{}:{}", in_zsh(value_name(*option)), zsh_values(*option));
      if (is_file_pair(value_name(*option))) fmt::print(":second:_files");
      fmt::print("'");
    }
  }
  if (name == "run" || name == "compare" || name == "advise")
    fmt::print(" \\\n        '(-)1:program:_command_names -e' '*::arguments:_normal'");
  if (name == "stats") fmt::print(" \\\n        '*:dump:_files'");
  if (name == "profile" || name == "leaks") fmt::print(" \\\n        '*:profile:_files'");
  if (name == "attach")
    fmt::print(" \\\n        '1:process:_pids' '2:request:({})' '3:request:({})' '4:file:_files'", attach_requests,
               profile_requests);
  if (name == "bench")
    fmt::print(" \\\n        '*:scenario:({{list,run}} {})'", replaced(std::string(scenarios), "'", "\""));
  fmt::print("\n      ;;\n");
}

void print_zsh(const CLI::App& app) {
  fmt::print(
      "#compdef sluice\n# Completion for zsh, written by `sluice document zsh`.\n_sluice() {{\n"
      "  local -a subcommands=(\n");
  for (const CLI::App* const each : subcommands_of(app))
    fmt::print("    '{}:{}'\n", each->get_name(), in_zsh(each->get_description()));
  fmt::print(
      "  )\n  if ((CURRENT == 2)); then\n    _describe subcommand subcommands\n    return\n  fi\n"
      "  shift words\n  ((CURRENT--))\n  case $words[1] in\n");
  for (const CLI::App* const each : subcommands_of(app))
    print_zsh_case(*each);
  fmt::print("  esac\n}}\n_sluice \"$@\"\n");
}

// --- fish

std::string in_fish(const std::string& text) {
  return replaced(replaced(text, "\\", "\\\\"), "'", "\\'");
}

void print_fish_options(const CLI::App& app) {
  const std::string& name = app.get_name();
  for (const CLI::Option* const option : options_of(app)) {
    std::string names;
    for (const std::string& each : option->get_snames())
      names += " -s " + each;
    for (const std::string& each : option->get_lnames())
      names += " -l " + each;
    const std::string_view words = words_of(*option);
    fmt::print("complete -c sluice -n '__fish_seen_subcommand_from {}'{}{} -d '{}'\n", name, names,
               takes_file(*option)           ? " -r -F"
               : !words.empty()              ? fmt::format(" -x -a '{}'", words)
               : has_separate_value(*option) ? " -x"
                                             : "",
               in_fish(option_text(*option)));
  }
  if (name == "run" || name == "compare" || name == "advise")
    fmt::print(
        "complete -c sluice -n '__fish_seen_subcommand_from {}' -x -a '(__fish_complete_subcommand --fcs-skip=2)'\n",
        name);
  if (takes_files(app)) fmt::print("complete -c sluice -n '__fish_seen_subcommand_from {}' -F\n", name);
  if (name == "attach")
    fmt::print("complete -c sluice -n '__fish_seen_subcommand_from attach' -a '(__fish_complete_pids) {} {}'\n",
               attach_requests, profile_requests);
  if (name == "bench")
    fmt::print("complete -c sluice -n '__fish_seen_subcommand_from bench' -a 'list run ({})'\n",
               in_fish("sluice bench list 2>/dev/null | sed -n '2,$s/ .*//p'"));
}

void print_fish(const CLI::App& app) {
  fmt::print("# Completion for fish, written by `sluice document fish`.\ncomplete -c sluice -f\n");
  for (const CLI::App* const each : subcommands_of(app))
    fmt::print("complete -c sluice -n __fish_use_subcommand -a {} -d '{}'\n", each->get_name(),
               in_fish(each->get_description()));
  for (const CLI::App* const each : subcommands_of(app))
    print_fish_options(*each);
}

}  // namespace

std::string value_name(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));  // without what a check has to say, as in "N:INT in [1 - 10000]"
}

std::string option_text(const CLI::Option& option) {
  const std::string text = replaced(option.get_description(), "\n", " "), fallback = option.get_default_str();
  return fallback.empty() ? text : fmt::format("{} (default: {})", text, fallback);
}

void print_document(const CLI::App& app, DocumentKind kind) {
  switch (kind) {
    case DocumentKind::synopsis:
      return print_synopsis(app);
    case DocumentKind::run:
      return print_roff_options(subcommand(app, "run"));
    case DocumentKind::compare:
      return print_roff_options(subcommand(app, "compare"));
    case DocumentKind::bench:
      return print_roff_options(subcommand(app, "bench"));
    case DocumentKind::profile:
      return print_roff_options(subcommand(app, "profile"));
    case DocumentKind::leaks:
      return print_roff_options(subcommand(app, "leaks"));
    case DocumentKind::advise:
      return print_roff_options(subcommand(app, "advise"));
    case DocumentKind::attach:
      return print_roff_options(subcommand(app, "attach"));
    case DocumentKind::top:
      return print_roff_options(subcommand(app, "top"));
    case DocumentKind::bash:
      return print_bash(app);
    case DocumentKind::zsh:
      return print_zsh(app);
    case DocumentKind::fish:
      return print_fish(app);
    case DocumentKind::statistics:
      return print_statistics_tables();
  }
}

}  // namespace sluice::cli
