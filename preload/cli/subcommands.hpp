// What the command of every system has: run, options, stats and docs, how its words are split and parsed, and the one
// place where its errors are printed. Open it to add an option to one of these.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "command.hpp"

namespace sluice::cli {

struct CommonArguments {
  RunRequest run;
  bool json = false;
  bool markdown = false;
  bool man = false;
  std::vector<std::string> files;
  bool wide = false;
  bool only_path = false;
};

// Effects: each adds a subcommand, which writes what it is given to `arguments`.
CLI::App* add_run(CLI::App& app, CommonArguments& arguments);
CLI::App* add_options(CLI::App& app, CommonArguments& arguments);
CLI::App* add_stats(CLI::App& app, CommonArguments& arguments);
CLI::App* add_docs(CLI::App& app, bool& only_path);

// Effects: gives a subcommand, or the command, --help, --version and the exit codes.
void add_common_flags(CLI::App& app);

// Arguments of the command itself, and what stands from the first "--" on. Only `run`, `compare`, `profile`, `leaks`
// and `advise` have such a part: a program's arguments, among which CLI11 must not look for options of ours.
struct SplitArguments {
  std::vector<std::string> own;   // last one first, as CLI11 wants them
  std::vector<std::string> rest;  // starts with "--" or is empty
};

SplitArguments split(int argc, char** argv);

// Returns: false when the words ask for --help or --version, which it prints. Throws: CommandError.
bool parse(CLI::App& app, const SplitArguments& words);

// The program and its arguments. The program is either the first argument that is no option of ours, and then
// `rest` is part of its arguments, or it follows the "--". Throws: CommandError when there is none, or an
// unknown option instead.
std::vector<std::string> command_of(const CLI::App& subcommand, std::vector<std::string> command,
                                    const std::vector<std::string>& rest);

// Effects: becomes the program. Throws: CommandError.
[[noreturn]] void execute_run(const CLI::App& subcommand, RunRequest& request, const SplitArguments& split_arguments);

OptionFormat option_format(const CommonArguments& arguments);

// Effects: calls `dispatch`, and prints the error that it throws. Returns: the exit code of the command.
using Dispatch = ExitCode (*)(int argc, char** argv);
int run_command(int argc, char** argv, Dispatch dispatch) noexcept;

}  // namespace sluice::cli
