// What --help looks like. Open it to change a usage line or the list of exit codes.
#pragma once

#include <memory>

#include <CLI/CLI.hpp>

namespace sluice::cli {

extern const char* const exit_codes_help;  // of the subcommands of this system: main.cpp, main_macos.cpp

// Returns: what writes the help of the command and of its subcommands, as wide as the terminal; 80 columns where there
// is none.
std::shared_ptr<CLI::Formatter> help_formatter();

}  // namespace sluice::cli
