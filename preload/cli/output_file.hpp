// A file that a report is written to: opened before the work begins, whole or not there at the end. Open it when a
// report is lost.
#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

// The path of standard output, which works where /dev lacks it, too.
inline constexpr const char* standard_output = "/dev/stdout";

// The text goes to a file beside the one named, which takes its place when all of it is on disk; so neither a full disk
// nor an interruption harms a report that was there before. A link stays; what it names is replaced. Devices and pipes
// are written as they are, and so is the file that standard output goes to.
class OutputFile {
 public:
  // An empty path stands for no file. Throws: CommandError (2) when it cannot be written.
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Throws: CommandError (1) when any of it was lost.
  void write(const std::string& text);

 private:
  std::string path_;
  std::string written_;  // what is written to: the path itself, or the file beside it until it is renamed
  int file_ = -1;
  bool is_standard_output_ = false;
};

// Throws: CommandError (2) when two of the paths that are not empty are the same: one report would be lost.
void check_different(const std::vector<std::string>& paths);

// Takes the numbers of standard input, output and error that are closed, lest a temporary file or a report get one;
// reading or writing them fails as before.
void occupy_standard_descriptors();

}  // namespace sluice::cli
