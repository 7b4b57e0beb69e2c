// `sluice advise`: what would make a program faster or smaller, as far as a paired measurement bears it out. Open it to
// change what is tried.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace sluice::cli::advise {

struct AdviseRequest {
  std::string input, load, ready;
  double timeout_seconds = 300;
  unsigned runs = 20;  // of those that are measured again
  std::string library;
  std::string rate;  // of the profile
  bool text = false;
  std::string json_file;
  std::vector<std::string> command_line;
  std::vector<std::string> command;
};

CLI::App* add_advise(CLI::App& app, AdviseRequest& request);

// Effects: measures, and prints the advice. Returns: whether all that was to be measured was. Throws: CommandError.
bool advise(const AdviseRequest& request);

}  // namespace sluice::cli::advise
