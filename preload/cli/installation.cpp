// Looks for the parts of the installation beside the command. Open it with installation.hpp.
#include "installation.hpp"

#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/core.h>

#include "command.hpp"
#include "preloading.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

fs::path prefix() {
  const fs::path command = command_file();
  if (command.empty())
    throw CommandError(exit_cannot_preload,
                       fmt::format("cannot tell where the command lies; name {} with --lib", default_library));
  return command.parent_path().parent_path();
}

void check_can_be_named(const fs::path& path) {
  if (path.string().find_first_of(preload_separators) != std::string::npos)
    throw CommandError(exit_cannot_preload,
                       fmt::format("{}: {} takes no path with a colon{}", path.string(), preload_variable,
                                   preload_separators[1] != 0 ? " or a space" : ""));
}

// "libsluice.so.1", "libsluice.1.dylib"
std::string numbered(const std::string& name) {
  constexpr std::string_view macos = ".dylib";
  const bool is_of_macos = name.ends_with(macos);
  return is_of_macos ? fmt::format("{}.{}{}", name.substr(0, name.size() - macos.size()), SLUICE_INTERFACE_MAJOR, macos)
                     : fmt::format("{}.{}", name, SLUICE_INTERFACE_MAJOR);
}

// Returns: the path of a file of the installation's libraries; empty when it is in no folder of libraries.
// What is installed to run programs, and not to build them, has shared libraries with their number alone.
fs::path find(const fs::path& prefix, const std::string& name) {
  for (const std::string& file : {name, numbered(name)})
    for (const char* folder : {"lib", SLUICE_LIBRARY_FOLDER, "lib/" SLUICE_MULTIARCH, "lib64"})
      if (fs::path path = prefix / folder / file; is_file(path)) return path;
  return {};
}

}  // namespace

std::string find_library(const std::string& wanted, const char* name) {
  fs::path path;
  if (!wanted.empty()) {
    path = fs::absolute(wanted);
    if (!is_file(path)) throw CommandError(exit_cannot_preload, fmt::format("{}: no such library", path.string()));
  } else {
    const fs::path from = prefix();
    path = find(from, name);
    if (path.empty())
      throw CommandError(exit_cannot_preload,
                         fmt::format("no {} in {}: name it with --lib", name, (from / "lib").string()));
  }
  check_can_be_named(path);
  return path.string();
}

std::string helper_folder() {
  const fs::path from = prefix();
  const fs::path launcher = find(from, "sluice/sluice-launch");
  if (launcher.empty())
    throw CommandError(
        exit_cannot_preload,
        fmt::format("no sluice/sluice-launch in {}: the installation is not complete", (from / "lib").string()));
  check_can_be_named(launcher);
  return launcher.parent_path().string();
}

std::string peers_folder() {
  const fs::path command = command_file();
  const fs::path from = command.parent_path().parent_path();
  // Beside a build tree, or with what is installed.
  const fs::path folder = is_file(from / "CMakeCache.txt") ? from.parent_path() / "peers" : from / "lib/sluice/peers";
  return is_file(folder / "versions") ? folder.string() : std::string();
}

std::string documents_page() {
  const fs::path from = prefix();
  const fs::path installed = (from / SLUICE_DOCUMENTS_FOLDER / "html" / "index.html").lexically_normal();
  // Beside a build tree, or with what is installed.
  const fs::path page = is_file(from / "CMakeCache.txt") ? from.parent_path() / "site" / "index.html" : installed;
  if (is_file(page)) return page.string();
  throw CommandError(exit_failure,
                     fmt::format("docs: there is no {}: in the source, `scripts/site` makes the pages, and after it "
                                 "`cmake --install` installs them",
                                 page.string()));
}

std::string scenario_folder() {
  std::error_code ignored;
  for (const fs::path& folder : {fs::path(helper_folder()) / "scenarios", prefix() / "bin" / "scenarios"})
    if (fs::is_directory(folder, ignored)) return folder.string();
  throw CommandError(
      exit_cannot_preload,
      "the scenarios are not there: they were left out when this was built; build and install it anew with "
      "`cmake --preset release -DSLUICE_SCENARIOS=ON`");
}

}  // namespace sluice::cli
