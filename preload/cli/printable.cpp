// Texts from elsewhere, made harmless. Open it with command.hpp.
#include "command.hpp"

namespace sluice::cli {

std::string printable(std::string_view text) {
  std::string line(text);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return line;
}

}  // namespace sluice::cli
