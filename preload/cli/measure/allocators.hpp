// The allocators that programs can be measured under, and where they are found on this machine. Open it to teach the
// command another one.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace bench {

struct Allocator {
  std::string name;
  std::filesystem::path library;  // empty: the malloc the system brings, nothing is preloaded
  std::string version = {};       // empty: not known
  std::vector<std::pair<std::string, std::string>> variables = {};  // of its environment, which set its options
};

/// The well-known allocators, by name; those absent are left out. A name stands for the newest of its kind: what
/// scripts/peers has built in the folder `peers` comes before what is installed in the usual library directories, which
/// is called "installed-NAME" then.
std::vector<Allocator> installed_allocators(const std::filesystem::path& peers = {});

/// Whether a newer one of its kind is there, so that this one is only compared when it is named.
bool is_older_of_its_kind(const Allocator& allocator);

/// The version of the package that a library was installed with; empty when no dpkg knows it.
std::string packaged_version(const std::filesystem::path& library);

/// "system glibc 2.36, mimalloc 3.6.0": of those whose version is known.
std::string versions_text(const std::vector<Allocator>& allocators);

/// Splits "NAME=PATH". Throws std::invalid_argument when it is not of that form or the file does not exist.
Allocator parse_allocator(const std::string& text);

}  // namespace bench
