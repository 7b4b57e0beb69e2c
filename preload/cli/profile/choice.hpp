// Which of the profiles of a run are reported on, and what is said of the others; names of functions for them. Open it
// when a report is on the wrong process.
#pragma once

#include <string>
#include <string_view>

#include "model.hpp"
#include "run.hpp"

namespace sluice::cli::profile {

struct ProcessChoice {
  bool all = false;          // merge the profiles of all processes
  std::string program = {};  // merge those of programs with this name; empty: the program itself
};

// Effects: names the processes left out, and files that could not be read, on standard error. Throws: CommandError
// where none is left, in the subcommand's name.
Profile chosen_profile(const ProfiledRun& run, const ProcessChoice& choice, std::string_view subcommand);

// Throws: CommandError, which names the source of the other, when they do not go together.
void merge_into(Profile& into, const Profile& other, const std::string& source);

// Effects: gives the profile names of functions, and says which files have none.
void add_names(Profile& profile);

// Effects: prints a line on standard error.
void remark(const std::string& text);

}  // namespace sluice::cli::profile
