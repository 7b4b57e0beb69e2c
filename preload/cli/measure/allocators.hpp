// The allocators that programs can be measured under, and where they are found on this machine. Open it to teach the
// command another one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace bench {

struct Allocator {
  std::string name;
  std::filesystem::path library;  // empty: the malloc the system brings, nothing is preloaded
};

/// The well-known allocators installed in the usual library directories, by name; those absent are left out.
std::vector<Allocator> installed_allocators();

/// Splits "NAME=PATH". Throws std::invalid_argument when it is not of that form or the file does not exist.
Allocator parse_allocator(const std::string& text);

}  // namespace bench
