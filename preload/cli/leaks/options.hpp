// The arguments of `sluice leaks`. Open it to add one.
#pragma once

#include <CLI/CLI.hpp>

#include "leaks.hpp"

namespace sluice::cli::leaks {

// Effects: adds the subcommand, whose arguments go to `request`; the program, which follows "--", is set by the caller.
CLI::App* add_leaks(CLI::App& app, LeaksRequest& request);

// Throws: CommandError (2) when arguments do not go together.
void check_request(const LeaksRequest& request);

}  // namespace sluice::cli::leaks
