// See subcommands.hpp.
#include "subcommands.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "help.hpp"
#include "installation.hpp"
#include "measure/names.hpp"
#include "option_table.hpp"
#include "program.hpp"
#include "sluice/sluice.h"

namespace sluice::cli {

namespace {

constexpr const char* version_line = "sluice " SLUICE_VERSION;
int output_error = 0;  // of the first write to standard output that failed; stdio keeps only that one did

}  // namespace

int StandardOutput::write_to_stdout(void*, const char* data, size_t size) noexcept {
  if (std::fwrite(data, 1, size, stdout) == size) return 0;
  output_error = errno;
  return errno;
}

void finish_output() {
  if (output_error == 0 && std::fflush(stdout) != 0) output_error = errno;
  if (output_error != 0)
    throw CommandError(exit_failure, fmt::format("cannot write to standard output: {}", std::strerror(output_error)));
}

CLI::App* add_run(CLI::App& app, CommonArguments& arguments) {
  CLI::App* run = app.add_subcommand("run", fmt::format("Run a program with {} preloaded", default_library));
  run->prefix_command();
  run->add_flag("--stats{text}", arguments.run.stats,
                "Print statistics at exit: text or json (to stderr), text:FILE, json:FILE, prometheus:FILE; "
                "%p in FILE is the process id. Only as --stats or --stats=FORMAT")
      ->type_name("[=FORMAT]");
  run->add_option("--only", arguments.run.only,
                  "Print statistics of programs with this name only (implies --stats). Several names are "
                  "separated by commas")
      ->type_name("NAME")
      ->check(CLI::Validator([](const std::string& names) { return names.empty() ? "names no program" : ""; }, ""));
  run->add_option("-o,--option", arguments.run.options,
                  "Set an option of the allocator; `sluice options` lists them. May be repeated")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  run->add_option("--lib", arguments.run.library,
                  fmt::format("The {} to preload, instead of the one installed beside the command", default_library))
      ->type_name("PATH");
  run->add_flag("--secure", arguments.run.secure,
                fmt::format("Preload {}, which checks what the program does to its heap", secure_library))
      ->excludes("--lib");
  run->add_flag("--force", arguments.run.force, "Run the program even where the preload cannot work");
  return run;
}

CLI::App* add_options(CLI::App& app, CommonArguments& arguments) {
  CLI::App* options =
      app.add_subcommand("options", "Print the options of the allocator, which are environment variables");
  CLI::Option* json = options->add_flag("--json", arguments.json, "As JSON");
  CLI::Option* markdown = options->add_flag("--markdown", arguments.markdown, "As a Markdown table");
  CLI::Option* man = options->add_flag("--man", arguments.man, "As a section of a manual page");
  json->excludes(markdown)->excludes(man);
  markdown->excludes(man);
  return options;
}

CLI::App* add_stats(CLI::App& app, CommonArguments& arguments) {
  CLI::App* stats = app.add_subcommand("stats", "Print a JSON statistics dump as a table, or the difference of two");
  stats->add_option("FILE", arguments.files, "A dump written with SLUICE_STATS=json:FILE; - is standard input")
      ->required()
      ->expected(1, 2)
      ->type_name("");
  stats->add_flag("--wide", arguments.wide,
                  "Show all columns of the tables. Without it, columns that do not fit the terminal are left out, "
                  "starting with the last ones; differences stay");
  return stats;
}

CLI::App* add_docs(CLI::App& app, bool& only_path) {
  CLI::App* docs = app.add_subcommand("docs", "Open the installed documents in a browser");
  docs->add_flag("--path", only_path, "Print the path of the first page instead");
  return docs;
}

SplitArguments split(int argc, char** argv) {
  std::vector<std::string> all(argv + (argc > 0 ? 1 : 0), argv + argc);
  constexpr std::string_view with_program[] = {"run", "compare", "profile", "leaks", "advise"};
  const bool has_program = !all.empty() && std::find(std::begin(with_program), std::end(with_program), all.front()) !=
                                               std::end(with_program);
  const auto separator = has_program ? std::find(all.begin(), all.end(), "--") : all.end();
  return {{std::make_reverse_iterator(separator), all.rend()}, {separator, all.end()}};
}

namespace {

// The names of a subcommand's options, those of its parent included where it takes them.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* each = &app; each != nullptr; each = each->get_fallthrough() ? each->get_parent() : nullptr)
    for (const CLI::Option* option : each->get_options())
      for (const std::string& name : option->get_lnames())
        names.push_back("--" + name);
  return names;
}

// "bench run", as the user calls it.
std::string full_name(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  const bool is_top = parent == nullptr || parent->get_parent() == nullptr;
  return is_top ? app.get_name() : fmt::format("{} {}", full_name(*parent), app.get_name());
}

[[noreturn]] void refuse_option(const CLI::App& app, const std::string& argument) {
  const std::string option = argument.substr(0, argument.find('='));
  throw CommandError(exit_usage, fmt::format("{0}: unknown option {1}{2} (see `sluice {0} --help`)", full_name(app),
                                             option, bench::suggestion(option, option_names(app))));
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(each->get_name());
  return names;
}

[[noreturn]] void refuse_subcommand(const CLI::App& app, const std::string& name) {
  const bool is_top = app.get_parent() == nullptr;
  throw CommandError(
      exit_usage,
      fmt::format("{0}no subcommand '{1}'{2} (see `sluice {3}--help`)", is_top ? "" : app.get_name() + ": ", name,
                  bench::suggestion(name, subcommand_names(app)), is_top ? "" : app.get_name() + " "));
}

// Arguments that no option or subcommand takes. Throws: CommandError.
[[noreturn]] void refuse_extras(const CLI::App& app) {
  const CLI::App* parsed = &app;
  while (!parsed->get_subcommands().empty())
    parsed = parsed->get_subcommands().front();
  const std::vector<std::string> extras = app.remaining(true);
  const auto is_option = [](const std::string& each) { return each.size() > 1 && each.front() == '-'; };
  const auto option = std::find_if(extras.begin(), extras.end(), is_option);
  if (option != extras.end()) refuse_option(*parsed, *option);
  const std::string extra = extras.empty() ? std::string() : extras.front();
  if (parsed->get_name() == "bench") refuse_subcommand(*parsed, extra);
  throw CommandError(exit_usage,
                     fmt::format("{0}: what is '{1}'? (see `sluice {0} --help`)", full_name(*parsed), extra));
}

// For a word that is taken for the program though it may be meant for something else. Throws: CommandError, with what
// to know about it, when there is no such program.
void check_is_program(const std::string& word, const std::string& subcommand, const char* remark) {
  try {
    find_program(word);
  } catch (const CommandError& problem) {
    throw CommandError(problem.code(), fmt::format("{}: {}; {}", subcommand, problem.what(), remark));
  }
}

// "--stats json -- PROGRAM" is read as "--stats=json -- PROGRAM": what else could be meant? Without the "--", json is
// the program. Throws: CommandError when there is no such one.
void take_separate_format(RunRequest& request, std::vector<std::string>& words, const SplitArguments& arguments) {
  const std::vector<std::string>& own = arguments.own;
  const bool follows_stats = !words.empty() && own.size() > words.size() && own[words.size()] == "--stats";
  if (!follows_stats || !is_stats_format(words.front())) return;
  if (words.size() != 1 || arguments.rest.size() < 2)
    return check_is_program(words.front(), "run", "a format stands behind =, as in --stats=json");
  request.stats = words.front();
  words.clear();
}

}  // namespace

std::vector<std::string> command_of(const CLI::App& subcommand, std::vector<std::string> command,
                                    const std::vector<std::string>& rest) {
  const std::string& name = subcommand.get_name();
  if (!command.empty() && command.front().size() > 1 && command.front().front() == '-')
    refuse_option(subcommand, command.front());
  const bool is_separator = command.empty() && !rest.empty();
  if (!command.empty() && !rest.empty())  // a value that its option takes only with '=', or a word too many
    check_is_program(command.front(), name, "it stands before -- and is taken for the program");
  command.insert(command.end(), rest.begin() + (is_separator ? 1 : 0), rest.end());
  if (command.empty())
    throw CommandError(exit_usage, fmt::format("{0}: which program? (see `sluice {0} --help`)", name));
  return command;
}

namespace {

// Throws: CommandError, with a suggestion, when the first word is no subcommand. CLI11 would say only that it wants
// one.
void check_subcommand(const CLI::App& app, const SplitArguments& words) {
  if (words.own.empty() || words.own.back().starts_with('-')) return;
  const std::string& first = words.own.back();
  const std::vector<std::string> known = subcommand_names(app);
  if (std::find(known.begin(), known.end(), first) == known.end()) refuse_subcommand(app, first);
}

}  // namespace

bool parse(CLI::App& app, const SplitArguments& words) {
  check_subcommand(app, words);
  try {
    app.parse(std::vector<std::string>(words.own));
  } catch (const CLI::Success& wanted) {
    std::ostringstream text;
    app.exit(wanted, text, text);
    fmt::print("{}", text.str());
    return false;
  } catch (const CLI::ExtrasError&) {
    refuse_extras(app);
  } catch (const CLI::ParseError& error) {
    throw CommandError(exit_usage, fmt::format("{} (see `sluice --help`)", error.what()));
  }
  return true;
}

[[noreturn]] void execute_run(const CLI::App& subcommand, RunRequest& request, const SplitArguments& split_arguments) {
  std::vector<std::string> words = subcommand.remaining();
  take_separate_format(request, words, split_arguments);
  request.command = command_of(subcommand, std::move(words), split_arguments.rest);
  run_program(request);
}

OptionFormat option_format(const CommonArguments& arguments) {
  if (arguments.json) return OptionFormat::json;
  if (arguments.markdown) return OptionFormat::markdown;
  return arguments.man ? OptionFormat::man : OptionFormat::text;
}

namespace {

int report(ExitCode code, const char* message) noexcept {
  try {
    fmt::print(stderr, "sluice: {}\n", printable(message));
  } catch (...) {
    // Standard error is gone as well: the exit code has to do.
  }
  return code;
}

}  // namespace

void add_common_flags(CLI::App& app) {
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.set_version_flag("--version", version_line, "Print the version and exit");
  app.footer(exit_codes_help);
}

int run_command(int argc, char** argv, Dispatch dispatch) noexcept {
  try {
    const ExitCode code = dispatch(argc, argv);
    finish_output();
    return code;
  } catch (const CommandError& error) {
    return report(error.code(), error.what());
  } catch (const std::exception& error) {
    return report(exit_failure, error.what());
  }
}

}  // namespace sluice::cli
