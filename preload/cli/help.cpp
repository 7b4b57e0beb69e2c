// Writes help. Open it with help.hpp.
#include "help.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "documents.hpp"
#include "measure/tables.hpp"
#include "measure/terminal.hpp"

namespace sluice::cli {

namespace {

// CLI11's help with usage lines of our own, because what follows a program's name is not ours to describe. Its lines
// have at most so many columns.
class Formatter : public CLI::Formatter {
 public:
  explicit Formatter(std::size_t columns) : columns_(columns) {
    constexpr std::size_t width_of_names = 26;
    column_width(std::clamp<std::size_t>(columns / 3, 8, width_of_names));
  }
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return bench::fitted(make_long_lines(app, std::move(name), mode), columns_);
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (is_bench_run(app)) return "Usage: sluice bench run SCENARIO... [OPTIONS]\n";
    if (app->get_name() == "list") return "Usage: sluice bench list\n";
    if (app->get_name() == "run") return "Usage: sluice run [OPTIONS] [--] PROGRAM [ARGUMENTS...]\n";
    if (app->get_name() == "compare")
      return "Usage: sluice compare [OPTIONS] [--] PROGRAM [ARGUMENTS...]\n"
             "       sluice compare --diff OLD NEW\n";
    if (app->get_name() == "bench")
      return "Usage: sluice bench list\n"
             "       sluice bench run SCENARIO... [OPTIONS]\n"
             "       sluice bench --all [OPTIONS]\n";
    if (app->get_name() == "profile")
      return "Usage: sluice profile [OPTIONS] -- PROGRAM [ARGUMENTS...]\n"
             "       sluice profile [OPTIONS] FILE...\n"
             "       sluice profile --diff BEFORE AFTER\n";
    if (app->get_name() == "leaks")
      return "Usage: sluice leaks [OPTIONS] -- PROGRAM [ARGUMENTS...]\n"
             "       sluice leaks [OPTIONS] FILE\n"
             "       sluice leaks [OPTIONS] BEFORE AFTER\n";
    if (app->get_name() == "advise") return "Usage: sluice advise [OPTIONS] -- PROGRAM [ARGUMENTS...]\n";
    if (app->get_name() == "attach")
      return "Usage: sluice attach PID [stats [--json]]\n"
             "       sluice attach PID profile start [--rate SIZE]\n"
             "       sluice attach PID profile dump FILE\n"
             "       sluice attach PID profile stop\n"
             "       sluice attach PID purge\n"
             "       sluice attach PID set NAME=VALUE\n";
    if (app->get_name() == "top") return "Usage: sluice top [OPTIONS]\n";
    if (app->get_name() == "options") return "Usage: sluice options [--json | --markdown | --man]\n";
    if (app->get_name() == "docs") return "Usage: sluice docs [--path]\n";
    if (app->get_name() == "stats") return "Usage: sluice stats [--wide] FILE\n       sluice stats [--wide] A B\n";
    return CLI::Formatter::make_usage(app, std::move(name));
  }
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return make_entry(make_option_name(option, is_positional) + make_option_opts(option), make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* app) const override {
    return make_entry(app->get_display_name(), app->get_description());
  }
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, is_positional);
    return name.substr(0, name.find('{'));  // a flag's default value is told by its description
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string value = option->get_positional() ? std::string() : value_name(*option);
    return value.empty() ? value : " " + value;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_desc(option), fallback = option->get_default_str();
    return fallback.empty() ? text : fmt::format("{} (default: {})", text, fallback);
  }

 private:
  // A name too long for its column has a line of its own.
  std::string make_entry(const std::string& name, const std::string& text) const {
    const std::size_t width = get_column_width() - 4;  // two blanks on either side
    return name.size() <= width ? fmt::format("  {:<{}}  {}\n", name, width, text)
                                : fmt::format("  {}\n{:{}}{}\n", name, "", width + 4, text);
  }
  std::string make_long_lines(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
    if (!is_bench_run(app)) return CLI::Formatter::make_help(app, std::move(name), mode);
    // What it takes is described by its parent, whose options it shares.
    std::string help = make_description(app) + make_usage(app, std::move(name)) + make_positionals(app);
    std::string options = make_groups(app->get_parent(), mode);
    const std::size_t all = options.find("  --all ");  // instead of scenarios
    if (all != std::string::npos) options.erase(all, options.find('\n', all) + 1 - all);
    return help + options + "\n" + make_footer(app);
  }
  static bool is_bench_run(const CLI::App* app) {
    return app->get_name() == "run" && app->get_parent()->get_name() == "bench";
  }

  const std::size_t columns_;
};

}  // namespace

std::shared_ptr<CLI::Formatter> help_formatter() {
  constexpr std::size_t columns_elsewhere = 80;  // where there is no terminal
  const std::size_t columns = bench::terminal_columns(STDOUT_FILENO);
  return std::make_shared<Formatter>(columns != 0 ? columns : columns_elsewhere);
}

}  // namespace sluice::cli
