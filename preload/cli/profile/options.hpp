// The arguments of `sluice profile`. Open it to add one.
#pragma once

#include <CLI/CLI.hpp>

#include "profile.hpp"

namespace sluice::cli::profile {

// Effects: adds the subcommand, whose arguments go to `request`; the program, which follows "--", is set by the caller.
CLI::App* add_profile(CLI::App& app, ProfileRequest& request);

// Throws: CommandError (2) when arguments do not go together.
void check_request(const ProfileRequest& request);

}  // namespace sluice::cli::profile
