// How a library is preloaded on this system: by which variable, and what is in the way. preloading_linux.cpp and
// preloading_macos.cpp say it of their systems. Open it to bring the command to another one.
#pragma once

#include <optional>
#include <string>

#include "file_bytes.hpp"

namespace sluice::cli {

extern const char* const preload_variable;    // "LD_PRELOAD", "DYLD_INSERT_LIBRARIES"
extern const char* const preload_separators;  // of the paths in it

extern const bool system_shells_take_preloads;

// Whether a library of this system's kind begins there.
bool is_library(const File& file);

// Returns: why `library` would not be loaded into the program that lies at `path`, in words that follow the program's
// name; nothing when it would, or when there is no telling.
std::optional<std::string> preload_obstacle(const std::string& path, const File& file, const std::string& library);

// Returns: the version of the copy of Sluice that is linked into the program; nothing when there is none, or no
// telling.
std::optional<std::string> linked_copy(const File& file);

// Returns: the path of the file that this command was started from; empty when there is no telling.
std::string command_file();

}  // namespace sluice::cli
