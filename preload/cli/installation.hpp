// Where the parts of the installation or build tree lie that this command belongs to. Open it when one is not found.
#pragma once

#include <string>

namespace sluice::cli {

extern const char* const default_library;  // "libsluice.so", "libsluice.dylib"
extern const char* const secure_library;

// Returns: the path of the library to preload: the one wanted, or if that is empty the installation's file `name`.
// Throws: CommandError (125) when it is not there, or no path for a preload.
std::string find_library(const std::string& wanted, const char* name = default_library);

// Returns: the folder of sluice-launch and the libraries that it preloads. Throws: CommandError (125) when there is
// none.
std::string helper_folder();

// Returns: the folder of the allocators that scripts/peers has built; empty when there is none.
std::string peers_folder();

// Returns: the first page of the web site. Throws: CommandError (1) when it is not installed.
std::string documents_page();

// Returns: the folder of the scenarios that `sluice bench` runs. Throws: CommandError (125) when there is none.
std::string scenario_folder();

}  // namespace sluice::cli
