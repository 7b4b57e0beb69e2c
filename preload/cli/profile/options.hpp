// The arguments of `sluice profile`. Open it to add one.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "profile.hpp"

namespace sluice::cli::profile {

// Effects: adds the subcommand, whose arguments go to `request`; the program, which follows "--", is set by the caller.
CLI::App* add_profile(CLI::App& app, ProfileRequest& request);

// Effects: adds options of subcommands that run a program with a profile: its rate; which of its processes are reported
// on, and how it is run.
CLI::Option* add_rate(CLI::App& app, std::string& rate);
void add_processes(CLI::App& app, bool& all, std::string& program, RunRequest& run);

// Throws: CommandError (2) when arguments do not go together.
void check_request(const ProfileRequest& request);

}  // namespace sluice::cli::profile
