// The sluice command: its arguments, its help, and the one place where its errors are printed. Open it to add
// an option or a subcommand.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "bench_command.hpp"
#include "command.hpp"
#include "compare.hpp"
#include "comparison_options.hpp"
#include "sluice/sluice.h"

namespace sluice::cli {

namespace {
int output_error = 0;  // of the first write to standard output that failed; stdio keeps only that one did
}

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

std::string printable(std::string_view text) {
  std::string line(text);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return line;
}

namespace {

constexpr const char* version_line = "sluice " SLUICE_VERSION;

constexpr const char* exit_codes_help =
    "Exit codes:\n"
    "  0    success\n"
    "  1    output could not be written; `sluice compare`: a run failed, or exit status or\n"
    "       output differed, or --diff found something worse; `sluice bench`: a run failed\n"
    "  2    bad arguments, or a malformed input file\n"
    "  125  the preload cannot work (static, privileged or foreign program, or no\n"
    "       libsluice.so), and the program was not run\n"
    "  126  the program cannot be executed\n"
    "  127  the program was not found\n"
    "  A program that `sluice run` started ends with its own exit status or signal.";

// CLI11's help with usage lines of our own, because what follows a program's name is not ours to describe.
class Formatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_name() == "run") return "Usage: sluice run [OPTIONS] [--] PROGRAM [ARGUMENTS...]\n";
    if (app->get_name() == "compare")
      return "Usage: sluice compare [OPTIONS] [--] PROGRAM [ARGUMENTS...]\n"
             "       sluice compare --diff OLD NEW\n";
    if (app->get_name() == "bench")
      return "Usage: sluice bench list\n"
             "       sluice bench run SCENARIO... [OPTIONS]\n"
             "       sluice bench --all [OPTIONS]\n";
    if (app->get_name() == "stats") return "Usage: sluice stats FILE\n       sluice stats A B\n";
    return CLI::Formatter::make_usage(app, std::move(name));
  }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, is_positional);
    return name.substr(0, name.find('{'));  // a flag's default value is told by its description
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string type = option->get_positional() ? std::string() : option->get_type_name();
    return type.empty() ? type : " " + type;
  }
};

struct Arguments {
  RunRequest run;
  CompareRequest compare;
  BenchRequest bench;
  bool json = false;
  bool markdown = false;
  bool man = false;
  std::vector<std::string> files;
};

CLI::App* add_run(CLI::App& app, Arguments& arguments) {
  CLI::App* run = app.add_subcommand("run", "Run a program with libsluice.so preloaded");
  run->prefix_command();
  run->add_flag("--stats{text}", arguments.run.stats,
                "Print statistics at exit: text or json (to stderr), text:FILE, json:FILE;\n"
                "%p in FILE is the process id. Only as --stats or --stats=FORMAT")
      ->type_name("[=FORMAT]");
  run->add_option("-o,--option", arguments.run.options,
                  "Set an option of the allocator; `sluice options` lists them. May be repeated")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  run->add_option("--lib", arguments.run.library,
                  "The libsluice.so to preload, instead of the one installed beside the command")
      ->type_name("PATH");
  run->add_flag("--secure", arguments.run.secure,
                "Preload libsluice-secure.so, which checks what the program does to its heap")
      ->excludes("--lib");
  run->add_flag("--force", arguments.run.force, "Run the program even where the preload cannot work");
  return run;
}

CLI::App* add_options(CLI::App& app, Arguments& arguments) {
  CLI::App* options =
      app.add_subcommand("options", "Print the options of the allocator, which are environment variables");
  CLI::Option* json = options->add_flag("--json", arguments.json, "As JSON");
  CLI::Option* markdown = options->add_flag("--markdown", arguments.markdown, "As a Markdown table");
  CLI::Option* man = options->add_flag("--man", arguments.man, "As a section of a manual page");
  json->excludes(markdown)->excludes(man);
  markdown->excludes(man);
  return options;
}

CLI::App* add_stats(CLI::App& app, Arguments& arguments) {
  CLI::App* stats = app.add_subcommand("stats", "Print a JSON statistics dump as a table, or the difference of two");
  stats->add_option("FILE", arguments.files, "A dump written with SLUICE_STATS=json:FILE; - is standard input")
      ->required()
      ->expected(1, 2)
      ->type_name("");
  return stats;
}

// Arguments of the command itself, and what stands from the first "--" on. Only `run` and `compare` have such a part:
// a program's arguments, among which CLI11 must not look for options of ours.
struct SplitArguments {
  std::vector<std::string> own;   // last one first, as CLI11 wants them
  std::vector<std::string> rest;  // starts with "--" or is empty
};

SplitArguments split(int argc, char** argv) {
  std::vector<std::string> all(argv + (argc > 0 ? 1 : 0), argv + argc);
  const bool has_program = !all.empty() && (all.front() == "run" || all.front() == "compare");
  const auto separator = has_program ? std::find(all.begin(), all.end(), "--") : all.end();
  return {{std::make_reverse_iterator(separator), all.rend()}, {separator, all.end()}};
}

// The program and its arguments. The program is either the first argument that is no option of ours, and then
// `rest` is part of its arguments, or it follows the "--". Throws: CommandError when there is none, or an
// unknown option instead.
std::vector<std::string> command_of(const CLI::App& subcommand, const std::vector<std::string>& rest) {
  const std::string& name = subcommand.get_name();
  std::vector<std::string> command = subcommand.remaining();
  if (!command.empty() && command.front().size() > 1 && command.front().front() == '-')
    throw CommandError(exit_usage,
                       fmt::format("{0}: unknown option {1} (see `sluice {0} --help`)", name, command.front()));
  const bool is_separator = command.empty() && !rest.empty();
  command.insert(command.end(), rest.begin() + (is_separator ? 1 : 0), rest.end());
  if (command.empty())
    throw CommandError(exit_usage, fmt::format("{0}: which program? (see `sluice {0} --help`)", name));
  return command;
}

ExitCode dispatch(int argc, char** argv) {
  CLI::App app("A drop-in malloc that tells what it did: run programs with it, read its statistics.", "sluice");
  app.require_subcommand(1);
  const auto formatter = std::make_shared<Formatter>();
  formatter->column_width(26);
  app.formatter(formatter);
  Arguments arguments;
  CLI::App* run = add_run(app, arguments);
  CLI::App* compare_command = add_compare(app, arguments.compare);
  CLI::App* bench = add_bench(app, arguments.bench);
  CLI::App* options = add_options(app, arguments);
  CLI::App* stats = add_stats(app, arguments);
  for (CLI::App* each : {&app, run, compare_command, bench, bench->get_subcommand("list"), bench->get_subcommand("run"),
                         options, stats}) {
    each->set_help_flag("-h,--help", "Print this help and exit");
    each->set_version_flag("--version", version_line, "Print the version and exit");
    each->footer(exit_codes_help);
  }

  SplitArguments split_arguments = split(argc, argv);
  const std::string first = split_arguments.own.empty() ? std::string() : split_arguments.own.back();
  if (!first.empty() && first.front() != '-' && first != "run" && first != "compare" && first != "bench" &&
      first != "options" && first != "stats")
    throw CommandError(exit_usage, fmt::format("no subcommand '{}' (see `sluice --help`)", first));
  try {
    app.parse(std::move(split_arguments.own));
  } catch (const CLI::Success& wanted) {  // --help, --version
    std::ostringstream text;
    app.exit(wanted, text, text);
    fmt::print("{}", text.str());
    return exit_success;
  } catch (const CLI::ParseError& error) {
    throw CommandError(exit_usage, fmt::format("{} (see `sluice --help`)", error.what()));
  }

  if (run->parsed()) {
    arguments.run.command = command_of(*run, split_arguments.rest);
    run_program(arguments.run);
  }
  if (compare_command->parsed()) {
    const std::vector<std::string>& diff = arguments.compare.diff;
    if (!diff.empty()) {
      if (!compare_command->remaining().empty() || !split_arguments.rest.empty())
        throw CommandError(exit_usage, "compare: --diff takes two files and no program");
      return compare_reports(diff[0], diff[1]) ? exit_success : exit_failure;
    }
    arguments.compare.command = command_of(*compare_command, split_arguments.rest);
    arguments.compare.command_line.assign(argv, argv + argc);
    return compare(arguments.compare) ? exit_success : exit_failure;
  }
  if (bench->get_subcommand("list")->parsed()) {
    list_scenarios();
  } else if (bench->parsed()) {
    arguments.bench.command_line.assign(argv, argv + argc);
    return run_scenarios(arguments.bench) ? exit_success : exit_failure;
  }
  if (options->parsed())
    print_options(arguments.json       ? OptionFormat::json
                  : arguments.markdown ? OptionFormat::markdown
                  : arguments.man      ? OptionFormat::man
                                       : OptionFormat::text);
  if (stats->parsed()) print_stats(arguments.files);
  return exit_success;
}

int report(ExitCode code, const char* message) noexcept {
  try {
    fmt::print(stderr, "sluice: {}\n", printable(message));
  } catch (...) {
    // Standard error is gone as well: the exit code has to do.
  }
  return code;
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  using namespace sluice::cli;
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
