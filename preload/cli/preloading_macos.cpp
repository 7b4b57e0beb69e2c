// The preload on macOS; what is in the way is said in macho/insertion.hpp. See preloading.hpp.
#include "preloading.hpp"

#include <climits>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <mach-o/dyld.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include "installation.hpp"
#include "macho/insertion.hpp"

namespace sluice::cli {

const char* const preload_variable = "DYLD_INSERT_LIBRARIES";
const char* const preload_separators = ":";
const bool system_shells_take_preloads = false;
const char* const default_library = "libsluice.dylib";
const char* const secure_library = "libsluice-secure.dylib";

namespace {

std::vector<macho::Slice> slices_of(const File& file) {
  return macho::read_image([&](uint64_t offset, size_t size) { return file.read(offset, size); });
}

// The machine's processor, also where this command itself is translated for it.
uint32_t processor() {
  int is_arm = 0;
  size_t bytes = sizeof is_arm;
  return sysctlbyname("hw.optional.arm64", &is_arm, &bytes, nullptr, 0) == 0 && is_arm != 0 ? macho::arm64
                                                                                            : macho::x86_64;
}

std::string without_links(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) != nullptr ? resolved : path;
}

}  // namespace

bool is_library(const File& file) {
  const std::vector<macho::Slice> slices = slices_of(file);
  return !slices.empty() && slices.front().is_library;
}

std::optional<std::string> preload_obstacle(const std::string& path, const File& file, const std::string& library) {
  macho::ProgramFile program;
  program.path = without_links(path);
  program.can_be_read = file.is_open();
  struct stat status;
  if (stat(path.c_str(), &status) == 0) {
    program.is_restricted = (status.st_flags & SF_RESTRICTED) != 0;
    program.is_setuid = (status.st_mode & S_ISUID) != 0 && status.st_uid != getuid();
    program.is_setgid = (status.st_mode & S_ISGID) != 0 && status.st_gid != getgid();
  }
  return macho::obstacle(program, slices_of(file), slices_of(File(library)), processor());
}

// Files of macOS have no mark of a copy.
std::optional<std::string> linked_copy(const File&) {
  return std::nullopt;
}

std::string command_file() {
  std::string path(PATH_MAX, '\0');
  auto size = static_cast<uint32_t>(path.size());
  if (_NSGetExecutablePath(path.data(), &size) != 0) return {};
  return without_links(path.c_str());
}

}  // namespace sluice::cli
