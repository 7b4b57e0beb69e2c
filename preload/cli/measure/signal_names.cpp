// Signals by their names, as glibc knows them. Open it with names.hpp.
#include <csignal>
#include <cstring>
#include <string>

#include "names.hpp"

namespace bench {

int signal_named(const std::string& name) {
  const std::string plain = name.starts_with("SIG") ? name.substr(3) : name;
  for (int number = 1; number < NSIG; ++number) {
    const char* const known = sigabbrev_np(number);
    if (plain == std::to_string(number) || (known != nullptr && plain == known)) return number;
  }
  return 0;
}

}  // namespace bench
