// Whether the loader of macOS inserts a library into a program (DYLD_INSERT_LIBRARIES), which it says nothing about
// where it does not. Open it when `sluice run` refuses a program of macOS that it should run, or the other way round.
//
// The rules are dyld's and those of AMFI, the part of the kernel that it asks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "macho/image.hpp"

namespace sluice::cli::macho {

// What the file system says of a program.
struct ProgramFile {
  std::string path;            // from the root, without links
  bool is_restricted = false;  // has the flag by which System Integrity Protection marks what it protects
  bool is_setuid = false;      // for another user than the one who runs it
  bool is_setgid = false;      // likewise for a group
  bool can_be_read = true;
};

// Returns: why the library would not be inserted, in words that follow the program's name; nothing when it would, or
// when there is no telling. `processor` is the machine's.
std::optional<std::string> obstacle(const ProgramFile& file, const std::vector<Slice>& program,
                                    const std::vector<Slice>& library, uint32_t processor);

}  // namespace sluice::cli::macho
