// The allocators that a comparison is made of, as --with, --baseline and --lib choose them. Open it to change how they
// are named on the command line.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "measure/allocators.hpp"

namespace sluice::cli {

struct AllocatorChoice {
  std::vector<std::string> with;  // NAME or NAME=PATH, and :OPTION=VALUE+…; empty: the newest of each kind
  std::string baseline;           // whom the others are compared with; empty: the first
  std::string library;            // path of libsluice.so; empty: beside the command
};

// Returns: the allocators in the order wanted. Throws: CommandError, in the name of a subcommand, for names that are
// not known, files that are not there, options that Sluice does not take, and names that are taken.
std::vector<bench::Allocator> chosen_allocators(const AllocatorChoice& choice, const char* subcommand);

// Returns: the place of the baseline among them. Throws: CommandError when it is not there.
std::size_t baseline_among(const std::vector<bench::Allocator>& allocators, const AllocatorChoice& choice,
                           const char* subcommand);

}  // namespace sluice::cli
