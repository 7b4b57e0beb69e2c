// The sluice command: its arguments, and the one place where its errors are printed. Open it to add
// an option or a subcommand.
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

ExitCode interruption_code() noexcept {
  return static_cast<ExitCode>(exit_interrupted + bench::interrupting_signal());
}

void throw_interrupted(const char* subcommand) {
  throw CommandError(interruption_code(),
                     fmt::format("{}: interrupted before a run had ended; no report is written", subcommand));
}

namespace {

constexpr const char* version_line = "sluice " SLUICE_VERSION;

struct Arguments {
  RunRequest run;
  CompareRequest compare;
  BenchRequest bench;
  profile::ProfileRequest profile;
  leaks::LeaksRequest leaks;
  advise::AdviseRequest advise;
  attach::AttachRequest attach;
  attach::TopRequest top;
  bool json = false;
  bool markdown = false;
  bool man = false;
  std::vector<std::string> files;
  bool wide = false;
  bool only_path = false;
  DocumentKind document = DocumentKind::synopsis;
};

CLI::App* add_run(CLI::App& app, Arguments& arguments) {
  CLI::App* run = app.add_subcommand("run", "Run a program with libsluice.so preloaded");
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

CLI::App* add_stats(CLI::App& app, Arguments& arguments) {
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

// Arguments of the command itself, and what stands from the first "--" on. Only `run`, `compare`, `profile`, `leaks`
// and `advise` have such a part: a program's arguments, among which CLI11 must not look for options of ours.
struct SplitArguments {
  std::vector<std::string> own;   // last one first, as CLI11 wants them
  std::vector<std::string> rest;  // starts with "--" or is empty
};

SplitArguments split(int argc, char** argv) {
  std::vector<std::string> all(argv + (argc > 0 ? 1 : 0), argv + argc);
  constexpr std::string_view with_program[] = {"run", "compare", "profile", "leaks", "advise"};
  const bool has_program = !all.empty() && std::find(std::begin(with_program), std::end(with_program), all.front()) !=
                                               std::end(with_program);
  const auto separator = has_program ? std::find(all.begin(), all.end(), "--") : all.end();
  return {{std::make_reverse_iterator(separator), all.rend()}, {separator, all.end()}};
}

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

// The program and its arguments. The program is either the first argument that is no option of ours, and then
// `rest` is part of its arguments, or it follows the "--". Throws: CommandError when there is none, or an
// unknown option instead.
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
  const Subcommands all = {.run = add_run(app, arguments),
                           .compare = add_compare(app, arguments.compare),
                           .bench = add_bench(app, arguments.bench),
                           .profile = profile::add_profile(app, arguments.profile),
                           .leaks = leaks::add_leaks(app, arguments.leaks),
                           .advise = advise::add_advise(app, arguments.advise),
                           .attach = attach::add_attach(app, arguments.attach),
                           .top = attach::add_top(app, arguments.top),
                           .options = add_options(app, arguments),
                           .stats = add_stats(app, arguments),
                           .docs = add_docs(app, arguments.only_path),
                           .document = add_document(app, arguments.document)};
  for (CLI::App* each :
       {&app, all.run, all.compare, all.bench, all.bench->get_subcommand("list"), all.bench->get_subcommand("run"),
        all.profile, all.leaks, all.advise, all.attach, all.top, all.options, all.stats, all.docs}) {
    each->set_help_flag("-h,--help", "Print this help and exit");
    each->set_version_flag("--version", version_line, "Print the version and exit");
    each->footer(exit_codes_help);
  }
  return all;
}

// Throws: CommandError, with a suggestion, when the first word is no subcommand. CLI11 would say only that it wants
// one.
void check_subcommand(const CLI::App& app, const SplitArguments& words) {
  if (words.own.empty() || words.own.back().starts_with('-')) return;
  const std::string& first = words.own.back();
  const std::vector<std::string> known = subcommand_names(app);
  if (std::find(known.begin(), known.end(), first) == known.end()) refuse_subcommand(app, first);
}

// Returns: false when the words ask for --help or --version, which it prints. Throws: CommandError.
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

OptionFormat option_format(const Arguments& arguments) {
  if (arguments.json) return OptionFormat::json;
  if (arguments.markdown) return OptionFormat::markdown;
  return arguments.man ? OptionFormat::man : OptionFormat::text;
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
  if (subcommands.run->parsed()) execute_run(*subcommands.run, arguments.run, words);
  if (subcommands.compare->parsed()) return execute_compare(*subcommands.compare, arguments.compare, words);
  if (subcommands.bench->parsed()) return execute_bench(*subcommands.bench, arguments.bench);
  if (subcommands.profile->parsed()) return execute_profile(arguments.profile, words);
  if (subcommands.leaks->parsed()) return execute_leaks(arguments.leaks, words);
  if (subcommands.advise->parsed()) return execute_advise(arguments.advise, words);
  if (subcommands.attach->parsed()) attach::attach_to(arguments.attach);
  if (subcommands.top->parsed()) attach::show_top(arguments.top);
  if (subcommands.options->parsed()) print_options(option_format(arguments));
  if (subcommands.stats->parsed()) print_stats(arguments.files, arguments.wide);
  if (subcommands.docs->parsed()) show_documents(arguments.only_path);
  if (subcommands.document->parsed()) print_document(app, arguments.document);
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
