// What the subcommands share: exit codes, errors, and output whose failure is noticed. Open it to add a
// subcommand.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/print.hpp"

namespace sluice::cli {

// Exit codes of the command itself; a program that was started ends with its own.
enum ExitCode : int {
  exit_success = 0,
  exit_failure = 1,           // the output could not be written, memory ran out
  exit_usage = 2,             // bad arguments, or an unreadable or malformed input file
  exit_cannot_preload = 125,  // the program was not run, because the preload cannot work
  exit_cannot_execute = 126,  // the program was found and cannot be executed
  exit_not_found = 127,       // the program was not found
  exit_interrupted = 128,     // and the number of the signal that ended the runs: 130 after Ctrl-C
};

// An error that ends the command: main prints it as one line and exits with its code.
class CommandError : public std::runtime_error {
 public:
  CommandError(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

// Returns: the exit code for runs that a signal has ended.
ExitCode interruption_code() noexcept;

// For a subcommand that was interrupted before there was anything to report. Throws: CommandError.
[[noreturn]] void throw_interrupted(const char* subcommand);

// A Print to standard output, by way of stdio.
class StandardOutput : public Print {
 public:
  StandardOutput() noexcept : Print(buffer_, sizeof buffer_, write_to_stdout, nullptr) {}

 private:
  static int write_to_stdout(void*, const char* data, size_t size) noexcept;
  char buffer_[512];
};

// Effects: hands standard output on to its file. Throws: CommandError when any of it was lost, as on a full
// disk.
void finish_output();

// Returns: `text` with control characters replaced, so that a message stays one line and harmless to a
// terminal.
std::string printable(std::string_view text);

struct RunRequest {
  std::string stats;                 // FORMAT of --stats; empty when it was not given
  std::string only;                  // names of the programs that print statistics; empty: all
  std::vector<std::string> options;  // NAME=VALUE
  std::string library;               // path of libsluice.so; empty: beside the command
  bool secure = false;               // libsluice-secure.so beside the command
  bool force = false;                // run the program though the preload cannot work
  std::vector<std::string> command;  // the program and its arguments
};

// Effects: becomes the program, with libsluice.so preloaded. Returns: never. Throws: CommandError.
[[noreturn]] void run_program(const RunRequest& request);

enum class OptionFormat { text, json, markdown, man };

// Effects: prints the table of options.
void print_options(OptionFormat format);

// Effects: opens the web site that is installed with the command in a browser, or prints the path of its first page.
// Throws: CommandError when it is not installed, or nothing opens it.
void show_documents(bool only_path);

// Effects: prints one dump as the statistics table, or two as their difference, with all columns or those that fit the
// terminal; "-" is standard input. Throws: CommandError.
void print_stats(const std::vector<std::string>& files, bool wide);

}  // namespace sluice::cli
