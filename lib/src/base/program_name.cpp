// See program_name.hpp.
#include "base/program_name.hpp"

#include <string_view>

#include "os/process.hpp"

namespace sluice {
namespace {

using std::string_view;

// What follows the last slash.
string_view without_folders(string_view path) noexcept {
  const size_t slash = path.rfind('/');
  const size_t start = slash == string_view::npos ? 0 : slash + 1;
  return {path.data() + start, path.size() - start};
}

struct Names {
  string_view file, called;
  string_view thread;  // cut by the system

  bool include(string_view name) const noexcept {
    if (name.empty()) return false;
    const string_view cut{name.data(),
                          name.size() < os::thread_name_capacity ? name.size() : os::thread_name_capacity - 1};
    return name == file || name == called || cut == thread;
  }
};

}  // namespace

bool program_is_among(const char* list) noexcept {
  string_view rest = list;
  if (rest.empty()) return true;
  char file[1024], thread[os::thread_name_capacity];
  const size_t length = os::program_file(file, sizeof file);
  os::thread_name(thread);
  const Names names{without_folders({file, length}), os::program_called(), thread};
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const string_view name{rest.data(), comma == string_view::npos ? rest.size() : comma};
    if (names.include(without_folders(name))) return true;
    rest.remove_prefix(comma == string_view::npos ? rest.size() : comma + 1);
  }
  return false;
}

}  // namespace sluice
