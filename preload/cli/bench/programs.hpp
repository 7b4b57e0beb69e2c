// Scenarios that are real programs, described by files of JSON. Open it to change what such a description may hold;
// scenarios/programs/README.md tells how to write one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace bench {

struct RealProgram {
  std::string name;  // of the file
  std::string summary;
  std::vector<std::string> needs;     // commands that must be there
  std::vector<std::string> packages;  // of Debian, that bring them
  std::string prepare, before;        // lines of shell: before the first run, and before each
  std::vector<std::string> command;
  std::string input;
  std::string ready, load, stop;  // of a service, as of `sluice compare`
  double operations = 0;          // that the program or the load does; 0 where the load's output says its rate
  std::string rate;               // a regular expression whose group finds operations per second
  std::string unit;               // what an operation is
  bool varies = false;            // its output is different in each run
};

/// What the placeholders in a description stand for.
struct Places {
  std::filesystem::path data;  // where the descriptions lie
  std::filesystem::path work;  // an empty folder
  unsigned port = 0;
  std::string user;
};

/// The descriptions in a folder, by name; none when there is no such folder. Throws std::runtime_error that names the
/// file and what is wrong in it.
std::vector<RealProgram> read_programs(const std::filesystem::path& folder);

/// The first of the commands that it needs which is not there; empty when all are.
std::string missing_command(const RealProgram& program);

/// The same with ${data}, ${work}, ${port} and ${user} replaced.
RealProgram placed(const RealProgram& program, const Places& places);

/// A TCP port of 127.0.0.1 that nobody listens at now.
unsigned free_port();

}  // namespace bench
