// The functions of one loaded file: from its debug information, or from its symbol table. Open it when addresses have
// no names, or the wrong ones. Reads files by elfutils' libdw, as gdb finds them: debug information in the file itself,
// in /usr/lib/debug by name or by build id, and from debuginfod where DEBUGINFOD_URLS names a server.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model.hpp"

namespace sluice::cli::profile {

// A function at an address, and the line in it. Empty texts and 0 are unknown.
struct Place {
  std::string symbol = {}, file = {};
  int64_t line = 0;
};

class ModuleSymbols {
 public:
  // Opens the file of a mapping, if it is the one that was loaded; else what /usr/lib/debug has of its build id.
  explicit ModuleSymbols(const Mapping& mapping);
  ~ModuleSymbols();
  ModuleSymbols(const ModuleSymbols&) = delete;
  ModuleSymbols& operator=(const ModuleSymbols&) = delete;

  // Returns: the function at an address as the mapping was loaded, with those that are inlined there before it; nothing
  // where it is unknown.
  std::vector<Place> at(const Mapping& mapping, uint64_t address) const;

  // Where the function at an address begins in the file itself, as `objdump` tells it, by the tables for unwinding;
  // where they say nothing, the address in the file; the offset in it when there is no file.
  uint64_t begin_in_file(const Mapping& mapping, uint64_t address) const;

  // Why the file has no part in it; empty when it has.
  const std::string& problem() const noexcept { return problem_; }

 private:
  struct Module;
  std::unique_ptr<Module> module_;
  std::string problem_;
};

}  // namespace sluice::cli::profile
