// The sluice command of macOS: what of it needs nothing of Linux. Open it to add a subcommand there; those that it has
// are in subcommands.cpp.
#include <CLI/CLI.hpp>

#include "command.hpp"
#include "help.hpp"
#include "subcommands.hpp"

namespace sluice::cli {

const char* const exit_codes_help =
    "Exit codes:\n"
    "  0    success\n"
    "  1    output could not be written\n"
    "  2    bad arguments, or a malformed input file\n"
    "  125  the preload cannot work (protected, privileged or foreign program, or no libsluice.dylib), and the program "
    "was not run\n"
    "  126  the program cannot be executed\n"
    "  127  the program was not found\n"
    "  A program that `sluice run` started ends with its own exit status or signal.";

namespace {

ExitCode dispatch(int argc, char** argv) {
  CLI::App app("Run programs on the Sluice malloc. The other subcommands are those of Linux alone.", "sluice");
  app.require_subcommand(1);
  app.formatter(help_formatter());
  CommonArguments arguments;
  CLI::App* const run = add_run(app, arguments);
  CLI::App* const options = add_options(app, arguments);
  CLI::App* const stats = add_stats(app, arguments);
  for (CLI::App* each : {&app, run, options, stats})
    add_common_flags(*each);
  const SplitArguments words = split(argc, argv);
  if (!parse(app, words)) return exit_success;
  if (run->parsed()) execute_run(*run, arguments.run, words);
  if (options->parsed()) print_options(option_format(arguments));
  if (stats->parsed()) print_stats(arguments.files, arguments.wide);
  return exit_success;
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  return sluice::cli::run_command(argc, argv, sluice::cli::dispatch);
}
