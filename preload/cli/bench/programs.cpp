// Reads the descriptions of real programs. Open it with programs.hpp.
#include "bench/programs.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "measure/descriptor.hpp"
#include "measure/names.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Takes members out of an object, so that what is left at the end is what nobody knows.
class Members {
 public:
  explicit Members(json object) : object_(std::move(object)) {
    if (!object_.is_object()) throw std::runtime_error("it is no JSON object");
  }

  template <class T>
  T take(const char* name) {
    if (!object_.contains(name)) throw std::runtime_error(fmt::format("it has no \"{}\"", name));
    return take_or(name, T{});
  }

  template <class T>
  T take_or(const char* name, T otherwise) {
    if (!object_.contains(name)) return otherwise;
    try {
      T value = object_.at(name).get<T>();
      object_.erase(name);
      return value;
    } catch (const json::exception&) {
      throw std::runtime_error(fmt::format("its \"{}\" is of the wrong kind", name));
    }
  }

  void require_end() const {
    if (!object_.empty()) throw std::runtime_error(fmt::format("nobody knows its \"{}\"", object_.begin().key()));
  }

 private:
  json object_;
};

void check(const RealProgram& program) {
  if (program.command.empty() || program.command.front().empty()) throw std::runtime_error("its \"command\" is empty");
  if ((program.operations > 0) == !program.rate.empty())
    throw std::runtime_error("it needs either \"operations\", above 0, or \"rate\"");
  if (program.load.empty() && !(program.rate + program.ready + program.stop).empty())
    throw std::runtime_error("\"ready\", \"stop\" and \"rate\" belong to a service, which has a \"load\"");
  if (!program.stop.empty() && signal_named(program.stop) == 0) throw std::runtime_error("its \"stop\" is no signal");
  if (program.rate.empty()) return;
  try {
    if (std::regex(program.rate).mark_count() == 0) throw std::runtime_error("its \"rate\" has no group");
  } catch (const std::regex_error&) {
    throw std::runtime_error("its \"rate\" is no regular expression");
  }
}

RealProgram read_program(const fs::path& path) {
  std::ifstream file(path);
  Members members(json::parse(file, nullptr, false));
  using Words = std::vector<std::string>;
  RealProgram program;
  program.name = path.stem();
  program.summary = members.take<std::string>("summary");
  program.needs = members.take<Words>("needs");
  program.packages = members.take_or<Words>("packages", {});
  program.prepare = members.take_or<std::string>("prepare", {});
  program.before = members.take_or<std::string>("before", {});
  program.command = members.take<Words>("command");
  program.input = members.take_or<std::string>("input", {});
  program.ready = members.take_or<std::string>("ready", {});
  program.load = members.take_or<std::string>("load", {});
  program.stop = members.take_or<std::string>("stop", {});
  program.operations = members.take_or<double>("operations", 0);
  program.rate = members.take_or<std::string>("rate", {});
  program.unit = members.take<std::string>("unit");
  program.varies = members.take_or<bool>("varies", false);
  members.require_end();
  check(program);
  return program;
}

bool is_command(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = fs::path(folder.empty() ? "." : folder) / name;
    std::error_code error;
    if (fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace

std::vector<RealProgram> read_programs(const fs::path& folder) {
  std::vector<RealProgram> programs;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".json") continue;
    try {
      programs.push_back(read_program(entry.path()));
    } catch (const std::runtime_error& problem) {
      throw std::runtime_error(fmt::format("{}: {}", entry.path().string(), problem.what()));
    }
  }
  std::sort(programs.begin(), programs.end(),
            [](const RealProgram& left, const RealProgram& right) { return left.name < right.name; });
  return programs;
}

std::string missing_command(const RealProgram& program) {
  const auto missing = std::find_if_not(program.needs.begin(), program.needs.end(), is_command);
  return missing == program.needs.end() ? std::string() : *missing;
}

RealProgram placed(const RealProgram& program, const Places& places) {
  const std::map<std::string, std::string> meanings = {{"${data}", places.data.string()},
                                                       {"${work}", places.work.string()},
                                                       {"${port}", std::to_string(places.port)},
                                                       {"${user}", places.user}};
  const auto replace = [&](std::string& text) {
    for (const auto& [placeholder, meaning] : meanings) {
      for (std::size_t at = 0; (at = text.find(placeholder, at)) != std::string::npos; at += meaning.size())
        text.replace(at, placeholder.size(), meaning);
    }
  };
  RealProgram result = program;
  for (std::string* const text : {&result.prepare, &result.before, &result.input, &result.ready, &result.load})
    replace(*text);
  for (std::string& word : result.command)
    replace(word);
  return result;
}

unsigned free_port() {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket.number(), any, length) != 0 || getsockname(socket.number(), any, &length) != 0)
    throw std::runtime_error("no TCP port of 127.0.0.1 is free");
  return ntohs(address.sin_port);
}

}  // namespace bench
