// `sluice attach` and `sluice top`: what is asked of running processes. Open it to change their arguments.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace CLI {
class App;
}

namespace sluice::cli::attach {

struct AttachRequest {
  pid_t pid = 0;
  std::vector<std::string> words;  // what is asked for; none: stats
  bool json = false;
  bool force = false;
  std::string rate;
};

struct TopRequest {
  std::string sort = "resident";
  double interval = 2;  // seconds
  bool once = false;
  bool sites = true;
};

CLI::App* add_attach(CLI::App& app, AttachRequest& request);
CLI::App* add_top(CLI::App& app, TopRequest& request);

// Effects: asks one process, and prints or writes what it answers. Throws: CommandError.
void attach_to(const AttachRequest& request);

// Effects: shows all processes that can be attached until the user ends it; once where standard output or input is no
// terminal. Throws: CommandError.
void show_top(const TopRequest& request);

}  // namespace sluice::cli::attach
