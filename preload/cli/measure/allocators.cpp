// Looks for preloadable allocators. Open it when one that is installed is not found.
#include "allocators.hpp"

#include <fmt/core.h>

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace bench {
namespace {

namespace fs = std::filesystem;

/// A distribution's own directory for this architecture first; a library for another one would not load.
std::vector<fs::path> library_directories() {
  std::vector<fs::path> directories;
  const std::string architecture = SLUICE_LIBRARY_ARCHITECTURE;
  if (!architecture.empty()) {
    directories.push_back(fs::path("/usr/local/lib") / architecture);
    directories.push_back(fs::path("/usr/lib") / architecture);
  }
  for (const char* const directory : {"/usr/local/lib64", "/usr/local/lib", "/usr/lib64", "/usr/lib"}) {
    directories.emplace_back(directory);
  }
  return directories;
}

/// The file of the highest version among `stem`, `stem`.1, `stem`.1.2 …, in the first directory that has any.
std::optional<fs::path> find_library(std::string_view stem) {
  for (const fs::path& directory : library_directories()) {
    std::optional<fs::path> best;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
      const std::string file = entry.path().filename();
      const bool matches = file.starts_with(stem) && (file.size() == stem.size() || file[stem.size()] == '.');
      if (matches && fs::is_regular_file(entry.path(), error) && (!best || *best < entry.path())) {
        best = entry.path();
      }
    }
    if (best) return best;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Allocator> installed_allocators() {
  struct Known {
    const char* name;
    std::vector<const char*> stems;
  };
  const std::vector<Known> known = {
      {"mimalloc", {"libmimalloc.so"}},
      {"jemalloc", {"libjemalloc.so"}},
      {"tcmalloc", {"libtcmalloc_minimal.so", "libtcmalloc.so"}},
  };
  std::vector<Allocator> found;
  for (const Known& candidate : known) {
    for (const char* const stem : candidate.stems) {
      if (const auto library = find_library(stem)) {
        found.push_back({candidate.name, *library});
        break;
      }
    }
  }
  return found;
}

Allocator parse_allocator(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw std::invalid_argument(fmt::format("--with needs NAME=PATH, not '{}'", text));
  }
  const fs::path library = text.substr(equals + 1);
  std::error_code error;
  if (!fs::is_regular_file(library, error)) {
    throw std::invalid_argument(fmt::format("--with {}: no such file", text));
  }
  return {text.substr(0, equals), fs::absolute(library)};
}

}  // namespace bench
