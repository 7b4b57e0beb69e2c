// A terminal that a live view has to itself: the other screen, no cursor, keys as they come. It is as it was before
// when its owner ends, and while the command is stopped (Ctrl-Z). Open it when a terminal stays broken.
#pragma once

#include <optional>
#include <string>

#include <termios.h>

namespace sluice::cli::attach {

class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Lines of text, as many as fit; the screen shows nothing else.
  void show(const std::string& text) const;

  // Waits for a key, a change of the terminal's size, a signal, or the time. Returns: the key, if one came.
  std::optional<char> wait_for_key(int milliseconds);

  // A signal asks the command to end, or the terminal is gone.
  bool is_over() const;
  int ending_signal() const;  // 0: none

 private:
  void enter() const;
  void leave() const;

  termios before_{};
  bool is_gone_ = false;
};

}  // namespace sluice::cli::attach
