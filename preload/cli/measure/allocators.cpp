// Looks for preloadable allocators. Open it when one that is installed is not found.
#include "allocators.hpp"

#include <fmt/core.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
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

constexpr std::string_view older_prefix = "installed-";

/// What scripts/peers has built, with the versions that it wrote down: a name and a version in each line.
std::map<std::string, std::string> peer_versions(const fs::path& peers) {
  std::map<std::string, std::string> versions;
  std::ifstream file(peers / "versions");
  for (std::string name, version; file >> name && std::getline(file >> std::ws, version);)
    versions.emplace(name, version);
  return versions;
}

/// What a peer that scripts/peers has built needs in its environment. Google's tcmalloc has caches per processor only
/// where the C library leaves restartable sequences (rseq) to it.
std::vector<std::pair<std::string, std::string>> variables_of(std::string_view name) {
  if (name == "tcmalloc") return {{"GLIBC_TUNABLES", "glibc.pthread.rseq=0"}};
  return {};
}

/// The first line that a shell command prints; empty when it fails.
std::string first_line_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "re"), pclose);
  std::array<char, 256> line{};
  if (!pipe || std::fgets(line.data(), line.size(), pipe.get()) == nullptr) return {};
  const std::string_view text = line.data();
  return std::string(text.substr(0, text.find('\n')));
}

}  // namespace

std::vector<Allocator> installed_allocators(const fs::path& peers) {
  struct Known {
    const char* name;
    std::vector<const char*> stems;
  };
  const std::vector<Known> known = {
      {"mimalloc", {"libmimalloc.so"}},
      {"jemalloc", {"libjemalloc.so"}},
      {"tcmalloc", {"libtcmalloc_minimal.so", "libtcmalloc.so"}},
      {"snmalloc", {"libsnmallocshim.so"}},
      {"rpmalloc", {"librpmallocwrap.so"}},
  };
  const std::map<std::string, std::string> versions = peer_versions(peers);
  std::vector<Allocator> found;
  for (const Known& candidate : known) {
    const fs::path newest = peers / fmt::format("lib{}.so", candidate.name);
    const auto version = versions.find(candidate.name);
    std::error_code error;
    const bool is_built = version != versions.end() && fs::is_regular_file(newest, error);
    if (is_built) found.push_back({candidate.name, newest, version->second, variables_of(candidate.name)});
    for (const char* const stem : candidate.stems) {
      if (const auto library = find_library(stem)) {
        found.push_back({is_built ? fmt::format("{}{}", older_prefix, candidate.name) : candidate.name, *library});
        break;
      }
    }
  }
  return found;
}

bool is_older_of_its_kind(const Allocator& allocator) {
  return allocator.name.starts_with(older_prefix);
}

std::string packaged_version(const fs::path& library) {
  const std::string path = library.string();
  if (path.find('\'') != std::string::npos) return {};
  const std::string owner = first_line_of(fmt::format("dpkg-query -S '{}' 2>/dev/null", path));
  const std::string package = owner.substr(0, owner.find(": "));
  if (package.empty() || package.find_first_of("' ") != std::string::npos) return {};
  return first_line_of(fmt::format("dpkg-query -W -f='${{Version}}' '{}' 2>/dev/null", package));
}

std::string versions_text(const std::vector<Allocator>& allocators) {
  std::string text;
  for (const Allocator& each : allocators)
    if (!each.version.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", each.name, each.version);
  return text;
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
