// `sluice profile`: who allocates in a program, from a run or from a file. Open it to change what its options do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.hpp"
#include "sites.hpp"

namespace sluice::cli::profile {

struct ProfileRequest {
  RunRequest run = {};                  // its command is empty when files are reported on
  std::vector<std::string> files = {};  // several are merged
  std::vector<std::string> diff = {};   // none or two
  std::string rate = {};
  bool all = false;          // merge the profiles of all processes of a run
  std::string program = {};  // merge those of programs with this name
  bool text = false;         // also if another report is asked for
  bool wide = false;
  std::optional<Measure> sort = {};  // none: usual_order
  size_t top = 20;
  std::string html = {}, pprof = {}, collapsed = {}, dhat = {};  // files, or empty

  bool writes_reports() const noexcept {
    return !html.empty() || !pprof.empty() || !collapsed.empty() || !dhat.empty();
  }
};

// Effects: makes the profile, or reads it, and writes the reports. Returns: the exit status of the program, or 0.
// Throws: CommandError.
int profile_memory(const ProfileRequest& request);

}  // namespace sluice::cli::profile
