// Whether more or less of a figure is better, as the words beside it tell. Open it to teach it another unit or name.
#pragma once

#include <string>

namespace bench {

enum class Better { unknown, less, more };

/// What is better of a figure in a line that a program printed, by its unit and then by its name: "Requests/sec: 5" is
/// better when it is more, "took 5 ms" when it is less. `before` and `after` are the line's parts around the figure.
/// Unknown where the words do not tell.
Better better_direction(const std::string& before, const std::string& after);

/// A unit that a program chooses by the figure: one run may print 900us, and the next one 1.1ms.
struct Unit {
  bool is_time = false;  // or a count, or bytes
  double factor = 1;     // of seconds, or of ones
};

/// The unit of a figure that stands right before `after`.
Unit unit_of(const std::string& after);

/// What to call the figure that the first group of a regular expression finds: the words around the group.
std::string figure_title(const std::string& expression);

}  // namespace bench
