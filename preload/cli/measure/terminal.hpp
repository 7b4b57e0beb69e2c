// What may be written where: colours, and how wide lines may be. Open it for how output looks on a terminal and
// elsewhere.
#pragma once

#include <cstddef>

namespace bench {

/// How text for the user looks.
struct Look {
  bool colour = false;
  std::size_t width = 0;  // columns that lines may have; 0: any number
  bool explain = false;   // with what the figures mean
};

/// Whether a descriptor leads to a terminal that moves its cursor and shows colours when it is told to.
bool is_smart_terminal(int descriptor);

/// What the environment asks for, strongest first: NO_COLOR (not empty) none, CLICOLOR_FORCE (not empty, not 0) in
/// files too, CLICOLOR=0 none; else colours on a terminal that knows them (TERM is not dumb).
bool wants_colour(int descriptor);

/// How many columns the terminal has; 0 where the descriptor leads to none, or it does not say.
std::size_t terminal_columns(int descriptor);

/// That of standard output; tables are as wide as they need to be with `wide`, and where it is no terminal.
Look look_of_output(bool wide, bool explain);

}  // namespace bench
