// The sluice command of Linux: its subcommands. Open it to add one, or an option; those that macOS has too are in
// subcommands.cpp.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "advise/advise.hpp"
#include "attach/attach.hpp"
#include "bench_command.hpp"
#include "command.hpp"
#include "compare.hpp"
#include "comparison_options.hpp"
#include "documents.hpp"
#include "help.hpp"
#include "leaks/leaks.hpp"
#include "leaks/options.hpp"
#include "measure/names.hpp"
#include "measure/process.hpp"
#include "option_table.hpp"
#include "profile/options.hpp"
#include "profile/profile.hpp"
#include "program.hpp"
#include "subcommands.hpp"

namespace sluice::cli {

const char* const exit_codes_help =
    "Exit codes:\n"
    "  0    success\n"
    "  1    output could not be written; `sluice compare`: a run failed, or exit status or output differed, or --diff "
    "found something worse; `sluice bench`: a run failed; `sluice attach`: the process cannot be asked, or refuses; "
    "`sluice docs`: nothing was opened\n"
    "  2    bad arguments, or a malformed input file\n"
    "  125  the preload cannot work (static, privileged or foreign program, or no libsluice.so), and the program was "
    "not run\n"
    "  126  the program cannot be executed\n"
    "  127  the program was not found\n"
    "  128  plus the number of a signal: that signal ended the runs (130: Ctrl-C)\n"
    "  A program that `sluice run`, `sluice profile` or `sluice leaks` started ends with its own exit status or "
    "signal; "
    "with `sluice leaks --error-exitcode N` it is N where something is leaked.";

ExitCode interruption_code() noexcept {
  return static_cast<ExitCode>(exit_interrupted + bench::interrupting_signal());
}

void throw_interrupted(const char* subcommand) {
  throw CommandError(interruption_code(),
                     fmt::format("{}: interrupted before a run had ended; no report is written", subcommand));
}

namespace {

struct Arguments {
  CommonArguments common;
  CompareRequest compare;
  BenchRequest bench;
  profile::ProfileRequest profile;
  leaks::LeaksRequest leaks;
  advise::AdviseRequest advise;
  attach::AttachRequest attach;
  attach::TopRequest top;
  DocumentKind document = DocumentKind::synopsis;
};

// Hidden: it is for the build.
CLI::App* add_document(CLI::App& app, DocumentKind& kind) {
  CLI::App* document = app.add_subcommand("document", "Print the options as a part of the manual page, or completion");
  document->group("");
  const std::map<std::string, DocumentKind> kinds = {{"synopsis", DocumentKind::synopsis},
                                                     {"run", DocumentKind::run},
                                                     {"compare", DocumentKind::compare},
                                                     {"bench", DocumentKind::bench},
                                                     {"profile", DocumentKind::profile},
                                                     {"leaks", DocumentKind::leaks},
                                                     {"advise", DocumentKind::advise},
                                                     {"attach", DocumentKind::attach},
                                                     {"top", DocumentKind::top},
                                                     {"bash", DocumentKind::bash},
                                                     {"zsh", DocumentKind::zsh},
                                                     {"fish", DocumentKind::fish},
                                                     {"statistics", DocumentKind::statistics}};
  document->add_option("KIND", kind)->required()->type_name("")->transform(CLI::CheckedTransformer(kinds));
  return document;
}

ExitCode code_of_runs(bool all_well) {
  if (bench::interrupting_signal() != 0) return interruption_code();
  return all_well ? exit_success : exit_failure;
}

struct Subcommands {
  CLI::App* run;
  CLI::App* compare;
  CLI::App* bench;
  CLI::App* profile;
  CLI::App* leaks;
  CLI::App* advise;
  CLI::App* attach;
  CLI::App* top;
  CLI::App* options;
  CLI::App* stats;
  CLI::App* docs;
  CLI::App* document;
};

Subcommands add_subcommands(CLI::App& app, Arguments& arguments) {
  const Subcommands all = {.run = add_run(app, arguments.common),
                           .compare = add_compare(app, arguments.compare),
                           .bench = add_bench(app, arguments.bench),
                           .profile = profile::add_profile(app, arguments.profile),
                           .leaks = leaks::add_leaks(app, arguments.leaks),
                           .advise = advise::add_advise(app, arguments.advise),
                           .attach = attach::add_attach(app, arguments.attach),
                           .top = attach::add_top(app, arguments.top),
                           .options = add_options(app, arguments.common),
                           .stats = add_stats(app, arguments.common),
                           .docs = add_docs(app, arguments.common.only_path),
                           .document = add_document(app, arguments.document)};
  for (CLI::App* each :
       {&app, all.run, all.compare, all.bench, all.bench->get_subcommand("list"), all.bench->get_subcommand("run"),
        all.profile, all.leaks, all.advise, all.attach, all.top, all.options, all.stats, all.docs})
    add_common_flags(*each);
  return all;
}

ExitCode execute_compare(const CLI::App& subcommand, CompareRequest& request, const SplitArguments& words) {
  if (request.diff.empty()) {
    request.command = command_of(subcommand, subcommand.remaining(), words.rest);
    return code_of_runs(compare(request));
  }
  if (!subcommand.remaining().empty() || !words.rest.empty())
    throw CommandError(exit_usage, "compare: --diff takes two files and no program");
  const bool is_well =
      compare_reports(request.diff[0], request.diff[1], bench::look_of_output(request.wide, request.explain));
  return is_well ? exit_success : exit_failure;
}

ExitCode execute_bench(const CLI::App& subcommand, const BenchRequest& request) {
  if (!subcommand.get_subcommand("list")->parsed()) return code_of_runs(run_scenarios(request));
  list_scenarios();
  return exit_success;
}

// Returns: the program that stands behind "--"; empty where nothing does. Throws: CommandError, where none follows.
std::vector<std::string> program_of(const SplitArguments& words, std::string_view subcommand) {
  if (words.rest.empty()) return {};
  if (words.rest.size() == 1)
    throw CommandError(exit_usage, fmt::format("{0}: which program? (see `sluice {0} --help`)", subcommand));
  return {words.rest.begin() + 1, words.rest.end()};
}

ExitCode execute_profile(profile::ProfileRequest& request, const SplitArguments& words) {
  request.run.command = program_of(words, "profile");
  profile::check_request(request);
  return static_cast<ExitCode>(profile::profile_memory(request));
}

ExitCode execute_leaks(leaks::LeaksRequest& request, const SplitArguments& words) {
  request.run.command = program_of(words, "leaks");
  leaks::check_request(request);
  return static_cast<ExitCode>(leaks::find_leaks(request));
}

ExitCode execute_advise(advise::AdviseRequest& request, const SplitArguments& words) {
  request.command = program_of(words, "advise");
  if (request.command.empty())
    throw CommandError(exit_usage, "advise: which program? It follows -- (see `sluice advise --help`)");
  return code_of_runs(advise::advise(request));
}

ExitCode dispatch(int argc, char** argv) {
  CLI::App app("Run programs on the Sluice malloc, compare allocators, and see who holds memory.", "sluice");
  app.require_subcommand(1);
  app.formatter(help_formatter());
  Arguments arguments;
  const Subcommands subcommands = add_subcommands(app, arguments);
  const SplitArguments words = split(argc, argv);
  if (!parse(app, words)) return exit_success;

  arguments.compare.command_line.assign(argv, argv + argc);
  arguments.bench.command_line.assign(argv, argv + argc);
  arguments.advise.command_line.assign(argv, argv + argc);
  if (subcommands.run->parsed()) execute_run(*subcommands.run, arguments.common.run, words);
  if (subcommands.compare->parsed()) return execute_compare(*subcommands.compare, arguments.compare, words);
  if (subcommands.bench->parsed()) return execute_bench(*subcommands.bench, arguments.bench);
  if (subcommands.profile->parsed()) return execute_profile(arguments.profile, words);
  if (subcommands.leaks->parsed()) return execute_leaks(arguments.leaks, words);
  if (subcommands.advise->parsed()) return execute_advise(arguments.advise, words);
  if (subcommands.attach->parsed()) attach::attach_to(arguments.attach);
  if (subcommands.top->parsed()) attach::show_top(arguments.top);
  if (subcommands.options->parsed()) print_options(option_format(arguments.common));
  if (subcommands.stats->parsed()) print_stats(arguments.common.files, arguments.common.wide);
  if (subcommands.docs->parsed()) show_documents(arguments.common.only_path);
  if (subcommands.document->parsed()) print_document(app, arguments.document);
  return exit_success;
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  return sluice::cli::run_command(argc, argv, sluice::cli::dispatch);
}
