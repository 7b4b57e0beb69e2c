// What is written to a Print, as a string. Open it where the command shows figures as libsluice.so prints them.
#pragma once

#include <cstddef>
#include <string>

#include "base/print.hpp"

namespace sluice::cli {

// Returns: what write(Print&) writes.
template <typename Write>
std::string text_of(const Write& write) {
  const auto append = [](void* text, const char* data, size_t size) noexcept -> int {
    static_cast<std::string*>(text)->append(data, size);
    return 0;
  };
  std::string text;
  char buffer[512];
  Print out(buffer, sizeof buffer, append, &text);
  write(out);
  out.finish();
  return text;
}

}  // namespace sluice::cli
