// Leaks that nobody wants to hear of: a file in the format of LeakSanitizer. Open it when a pattern does not match what
// it matches there.
//
//   # a comment
//   leak:pattern
//
// A leak is suppressed when the pattern is found in the name of a function, source file or object of its stack. In a
// pattern * stands for any text, ^ at its start and $ at its end for the start and the end of the name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli::leaks {

// Whether the name matches, as LeakSanitizer has it; an empty name never does.
bool matches(std::string_view pattern, std::string_view name);

class Suppressions {
 public:
  // Throws: CommandError (2) when the file cannot be read, or a line is none of the format.
  static Suppressions read(const std::string& file);

  // Throws: CommandError (2), which names the source. For tests.
  static Suppressions parse(const std::string& source, std::string_view text);

  bool empty() const noexcept { return patterns_.empty(); }
  bool cover(std::string_view name) const;

 private:
  std::vector<std::string> patterns_;
};

}  // namespace sluice::cli::leaks
