// `sluice attach`. Open it with attach.hpp.
#include "attach.hpp"

#include <chrono>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "../command.hpp"
#include "../option_table.hpp"
#include "../output_file.hpp"
#include "channel.hpp"
#include "profile/options.hpp"

namespace sluice::cli::attach {
namespace {

constexpr std::chrono::seconds patience{20};

[[noreturn]] void refuse_usage(const std::string& problem) {
  throw CommandError(exit_usage, fmt::format("attach: {} (see `sluice attach --help`)", problem));
}

// What is asked for, in words of the command line and in those of the process.
struct Wish {
  std::string request;
  std::string file;  // where the answer goes; empty: standard output
};

std::string set_request(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos) refuse_usage(fmt::format("set {}: expected NAME=VALUE", assignment));
  const OptionRow& row = find_option(std::string_view(assignment).substr(0, equals));
  const std::string value = assignment.substr(equals + 1);
  check_value(row, value);
  return fmt::format("set {}={}", row.name, value);
}

Wish profile_wish(const AttachRequest& request) {
  const auto& words = request.words;
  const std::string what = words.size() > 1 ? words[1] : "";
  if (what == "start" && words.size() == 2)
    return {fmt::format("profile start {}", request.rate.empty() ? "0" : request.rate), ""};
  if (what == "stop" && words.size() == 2) return {"profile stop", ""};
  if (what == "dump" && words.size() == 3) return {"profile dump", words[2]};
  if (what == "dump" && words.size() == 2) refuse_usage("profile dump: which file?");
  refuse_usage("profile: start, stop or dump FILE?");
}

Wish wish_of(const AttachRequest& request) {
  const auto& words = request.words;
  const std::string what = words.empty() ? "stats" : words.front();
  if (request.json && what != "stats") refuse_usage("--json is for stats");
  const bool starts = what == "profile" && words.size() > 1 && words[1] == "start";
  if (!request.rate.empty() && !starts) refuse_usage("--rate is for profile start");
  if (what == "profile") return profile_wish(request);
  if (what == "stats" && words.size() <= 1) return {request.json ? "stats json" : "stats text", ""};
  if (what == "purge" && words.size() == 1) return {"purge", ""};
  if (what == "set" && words.size() == 2) return {set_request(words[1]), ""};
  if (what == "set") refuse_usage("set: expected one NAME=VALUE");
  if (what == "stats" || what == "purge") refuse_usage(fmt::format("what is '{}'?", words[1]));
  refuse_usage(fmt::format("what is '{}'? stats, profile, purge or set", what));
}

}  // namespace

CLI::App* add_attach(CLI::App& app, AttachRequest& request) {
  CLI::App* attach = app.add_subcommand(
      "attach", "Ask a running process for statistics or a heap profile, have it give memory back, or set an option");
  attach->add_option("PID", request.pid, "A process on Sluice that was started with SLUICE_ATTACH=1")
      ->required()
      ->check(CLI::Range(1, 1 << 30))
      ->type_name("");
  attach
      ->add_option(
          "REQUEST", request.words,
          "stats (the default); profile start; profile dump FILE, in pprof's format; profile stop; purge: give "
          "back what is free; set NAME=VALUE: PURGE_DELAY, RETAIN or PROFILE_RATE")
      ->expected(0, 3)
      ->type_name("");
  attach->add_flag("--json", request.json, "stats: as JSON, which `sluice stats` reads");
  (void)profile::add_rate(*attach, request.rate);
  attach->add_flag("--force", request.force,
                   "Ask also a process that has entered a sandbox since it was started, which may end it");
  return attach;
}

void attach_to(const AttachRequest& request) {
  const Wish wish = wish_of(request);
  const Place place = find_place(request.pid, request.force);
  OutputFile file(wish.file);
  const Response response = ask(place, wish.request, request.pid, patience);
  switch (response.outcome) {
    case Response::Outcome::ok:
      break;
    case Response::Outcome::refused:
      throw CommandError(exit_failure, fmt::format("attach: process {}: {}", request.pid, response.text));
    case Response::Outcome::silent:
      throw CommandError(exit_failure,
                         fmt::format("attach: process {} does not answer: it was stopped, or has ended", request.pid));
    case Response::Outcome::gone:
      throw CommandError(exit_failure,
                         fmt::format("attach: process {} has ended, or has no room for one more client", request.pid));
  }
  if (!wish.file.empty()) return file.write(response.text);
  StandardOutput out;
  out.text(response.text);
}

}  // namespace sluice::cli::attach
