// Describes the arguments of `sluice leaks` and checks them. Open it with options.hpp.
#include "options.hpp"

#include <fmt/core.h>

#include "profile/options.hpp"

namespace sluice::cli::leaks {
namespace {

[[noreturn]] void refuse(const char* problem) {
  throw CommandError(exit_usage, fmt::format("leaks: {} (see `sluice leaks --help`)", problem));
}

}  // namespace

CLI::App* add_leaks(CLI::App& app, LeaksRequest& request) {
  CLI::App* leaks = app.add_subcommand("leaks", "Show what is alive at a program's end, and which of it is leaked");
  leaks
      ->add_option("FILE", request.files,
                   "A profile written with SLUICE_PROFILE=FILE; with two of one process: what was born after the first "
                   "and is alive in the second")
      ->expected(0, 2)
      ->type_name("");
  leaks->add_flag("--exact", request.exact,
                  "Sample every block, and find out at exit which ones the program can no longer reach");
  leaks->add_flag("--reachable", request.reachable, "List what can be reached, too, where that is known");
  leaks
      ->add_option("--error-exitcode", request.error_exitcode,
                   "End with this status when something is leaked and the program itself has not failed")
      ->type_name("N")
      ->check(CLI::Range(1, 255));
  leaks
      ->add_option("--suppressions", request.suppressions,
                   "Leave out what this file names, in lines leak:PATTERN as LeakSanitizer takes them")
      ->type_name("FILE");
  leaks->add_option("--json", request.json, "Write all sites with their stacks here")->type_name("FILE");
  leaks->add_option("--top", request.top, "Print so many sites")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  leaks->add_flag("--wide", request.wide, "Show all columns and whole names, though they do not fit the terminal");
  profile::add_rate(*leaks, request.rate)->excludes("--exact");
  profile::add_processes(*leaks, request.all, request.program, request.run);
  return leaks;
}

void check_request(const LeaksRequest& request) {
  const bool is_run = !request.run.command.empty();
  if (is_run && !request.files.empty()) refuse("either a program is run or files are read");
  if (!is_run && request.files.empty()) refuse("which program, or which file? A program follows --");
  const bool is_for_run = request.exact || !request.rate.empty() || request.all || !request.program.empty() ||
                          !request.run.options.empty() || !request.run.library.empty();
  if (!is_run && is_for_run)
    refuse("--exact, --rate, --all, --program, --option and --lib are for a program that is run");
  if (is_run && request.error_exitcode != 0 && !request.exact)
    refuse("--error-exitcode needs --exact: samples do not tell what is leaked");
}

}  // namespace sluice::cli::leaks
