// Describes the arguments of `sluice profile` and checks them. Open it with options.hpp.
#include "options.hpp"

#include <cstdint>
#include <map>
#include <string>

#include <fmt/core.h>

namespace sluice::cli::profile {
namespace {

// A size as options of the library are written: 512K, 1.
std::string problem_of_rate(const std::string& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  constexpr size_t most_digits = 15;
  const std::string suffix = text.substr(digits);
  const bool is_suffix = suffix.empty() || suffix == "K" || suffix == "M" || suffix == "G";
  const bool is_number = digits > 0 && digits <= most_digits && text.find_first_not_of('0') < digits;
  return is_number && is_suffix ? "" : fmt::format("bad value '{}': a size of at least 1, as in 512K", text);
}

void add_reports(CLI::App& app, ProfileRequest& request) {
  app.add_flag("--text", request.text, "Print the text, though another report is written, too");
  app.add_option("--html", request.html,
                 "Write a page with a flame graph, memory over time and all sites; it needs no network")
      ->type_name("FILE");
  app.add_option("--pprof", request.pprof,
                 "Write a profile with names of functions for pprof, Pyroscope, Parca and others")
      ->type_name("FILE");
  app.add_option("--collapsed", request.collapsed,
                 "Write stacks in lines for flamegraph.pl, of the value of --sort; - is standard output")
      ->type_name("FILE");
  app.add_option("--dhat", request.dhat, "Write what Valgrind's dh_view.html opens")->type_name("FILE");
  app.add_option(
         "--sort", request.sort,
         "Order sites by what is alive at the end (inuse) or at the peak (peak), by what was allocated in all "
         "(alloc), or by blocks freed soon (short-lived) (default: inuse; peak where little is alive at the end)")
      ->type_name("VALUE")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Measure>{{"inuse", Measure::inuse},
                                                                         {"peak", Measure::peak},
                                                                         {"alloc", Measure::alloc},
                                                                         {"short-lived", Measure::short_lived}}));
  app.add_option("--top", request.top, "Print so many sites")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_flag("--wide", request.wide, "Show all columns and whole names, though they do not fit the terminal");
  app.add_option("--diff", request.diff, "Run nothing; print what changed between two profiles, by site")
      ->type_name("BEFORE AFTER")
      ->expected(2);
}

[[noreturn]] void refuse(const std::string& problem) {
  throw CommandError(exit_usage, fmt::format("profile: {} (see `sluice profile --help`)", problem));
}

}  // namespace

CLI::Option* add_rate(CLI::App& app, std::string& rate) {
  return app
      .add_option("--rate", rate, "Bytes between two samples, on the average; 1: every allocation (default: 512K)")
      ->type_name("SIZE")
      ->check(CLI::Validator(problem_of_rate, ""));
}

void add_processes(CLI::App& app, bool& all, std::string& program, RunRequest& run) {
  app.add_flag("--all", all, "Report on all processes that the program starts, as one");
  app.add_option("--program", program, "Report on the processes of programs with this name")
      ->type_name("NAME")
      ->excludes("--all");
  app.add_option("-o,--option", run.options,
                 "Set an option of the allocator; `sluice options` lists them. May be repeated")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--lib", run.library, "The libsluice.so to preload, instead of the one installed beside the command")
      ->type_name("PATH");
}

CLI::App* add_profile(CLI::App& app, ProfileRequest& request) {
  CLI::App* profile =
      app.add_subcommand("profile", "Show who allocates: run a program with a heap profile, or read one");
  profile
      ->add_option("FILE", request.files,
                   "A profile written with SLUICE_PROFILE=FILE, or by --pprof; several are merged; - is standard input")
      ->type_name("");
  add_reports(*profile, request);
  (void)add_rate(*profile, request.rate);
  add_processes(*profile, request.all, request.program, request.run);
  return profile;
}

void check_request(const ProfileRequest& request) {
  const bool is_run = !request.run.command.empty();
  const int sources = (is_run ? 1 : 0) + (request.files.empty() ? 0 : 1) + (request.diff.empty() ? 0 : 1);
  if (sources == 0) refuse("which program, or which file? A program follows --");
  if (sources > 1 && is_run && !request.files.empty())
    refuse(fmt::format("what is '{}'? Either a program is run or a file is read", request.files.front()));
  if (sources > 1) refuse("--diff takes two files and nothing else");
  const bool is_for_run = !request.rate.empty() || request.all || !request.program.empty() ||
                          !request.run.options.empty() || !request.run.library.empty();
  if (!is_run && is_for_run) refuse("--rate, --all, --program, --option and --lib are for a program that is run");
  if (!request.diff.empty() && request.writes_reports()) refuse("--diff prints text only");
  if (request.collapsed == "-" && request.text && !is_run)
    refuse("--text and --collapsed - would both go to standard output");
}

}  // namespace sluice::cli::profile
