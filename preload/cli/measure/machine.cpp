// Asks the system what it is. Open it with machine.hpp.
#include "machine.hpp"

#include <fmt/core.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace bench {
namespace {

/// The value after `key` and a colon on its line in a text file; empty when there is none.
std::string value_in(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with(key) && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

}  // namespace

Machine this_machine() {
  utsname names{};
  uname(&names);
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_kib = sysconf(_SC_PAGESIZE) / 1024;
  Machine machine{fmt::format("{} {} {}", names.sysname, names.release, names.machine),
                  value_in("/proc/cpuinfo", "model name"),
                  sysconf(_SC_NPROCESSORS_ONLN),
                  pages / 1024 * page_kib,
                  {}};
  std::ifstream setting("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  std::getline(setting, text);
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']');
  if (open < close && close != std::string::npos) machine.huge_pages = text.substr(open + 1, close - open - 1);
  return machine;
}

long processors_at_hand() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  // It fails where there are more processors than such a set holds.
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : sysconf(_SC_NPROCESSORS_ONLN);
}

std::string machine_text(const Machine& machine) {
  return fmt::format("{}, {} × {}, transparent huge pages: {}", machine.system, machine.processors,
                     machine.processor.empty() ? "processor" : machine.processor,
                     machine.huge_pages.empty() ? "unknown" : machine.huge_pages);
}

}  // namespace bench
