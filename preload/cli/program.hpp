// A program as it lies on disk: where it is, and whether a library can be preloaded into it. Open it when
// `sluice run` refuses a program that it should run, or the other way round.
#pragma once

#include <optional>
#include <string>

namespace sluice::cli {

// Effects: looks a program up as execvp does: along PATH unless the name has a slash.
// Returns: its path, which has a slash. Throws: CommandError, 127 when there is none and 126 when none can be
// executed.
std::string find_program(const std::string& name);

// Effects: inspects the program, or the interpreter that a script names, for reasons why `library` would not
// be loaded into it: another architecture, static linking, privileges, another C library. What cannot be read
// is taken to be fine. Throws: CommandError (125) naming the first reason; 126 when a script's interpreter is
// missing.
void check_can_preload(const std::string& name, const std::string& path, const std::string& library);

// Returns: in words, that the program, or the interpreter that a script names, is linked with a copy of Sluice
// (sluice::static), which serves it in place of any preload; nothing when it is not.
std::optional<std::string> linked_with_sluice(const std::string& name, const std::string& path);

}  // namespace sluice::cli
