// Chooses, merges and names profiles. Open it with choice.hpp.
#include "choice.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <sys/wait.h>

#include <fmt/core.h>

#include "measure/process.hpp"
#include "symbolize.hpp"
#include "text.hpp"

namespace sluice::cli::profile {

void remark(const std::string& text) {
  fmt::print(stderr, "sluice: {}\n", printable(text));
}

void add_names(Profile& profile) {
  const std::vector<std::string> remarks = symbolize(profile);
  constexpr size_t most = 5;
  for (size_t i = 0; i < std::min(most, remarks.size()); ++i)
    remark(remarks[i]);
  if (remarks.size() > most) remark(fmt::format("{} more files have no names of functions", remarks.size() - most));
}

void merge_into(Profile& into, const Profile& other, const std::string& source) {
  if (!merge(into, other))
    throw CommandError(
        exit_usage,
        fmt::format("{}: cannot be merged with the one before: it has other values or another rate", source));
}

namespace {

double allocated_in(const Profile& profile) {
  const size_t place = profile.type_called("alloc_space");
  double sum = 0;
  for (const Sample& each : profile.samples)
    if (place != none) sum += static_cast<double>(each.values[place]);
  return sum;
}

std::string name_of(const ProcessProfile& process) {
  return process.profile.fact("program").value_or("unknown program");
}

bool is_wanted(const ProcessChoice& choice, const ProfiledRun& run, const ProcessProfile& process) {
  if (choice.all) return true;
  if (!choice.program.empty()) {
    const std::string name = name_of(process);
    return name == choice.program || name.substr(name.rfind('/') + 1) == choice.program;
  }
  return process.pid == run.pid;
}

// The other processes, those that allocated most first.
std::string others_text(const ProcessChoice& choice, const ProfiledRun& run) {
  std::vector<std::pair<double, std::string>> others;
  for (const ProcessProfile& each : run.processes)
    if (!is_wanted(choice, run, each)) {
      const double bytes = allocated_in(each.profile);
      others.emplace_back(bytes, fmt::format("{} (pid {}, {})", name_of(each), each.pid, bytes_text(bytes)));
    }
  if (others.empty()) return {};
  std::stable_sort(others.begin(), others.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr size_t most = 4;
  std::string names;
  for (size_t i = 0; i < std::min(most, others.size()); ++i)
    names += fmt::format("{}{}", i == 0 ? "" : ", ", others[i].second);
  return fmt::format("{} other {} allocated, too: {}{}; --all reports on all, --program NAME on some", others.size(),
                     others.size() == 1 ? "process" : "processes", names, others.size() > most ? ", …" : "");
}

}  // namespace

Profile chosen_profile(const ProfiledRun& run, const ProcessChoice& choice, std::string_view subcommand) {
  std::optional<Profile> all;
  for (const ProcessProfile& each : run.processes) {
    if (!is_wanted(choice, run, each)) continue;
    if (all)
      merge_into(*all, each.profile, fmt::format("pid {}", each.pid));
    else
      all = each.profile;
  }
  for (const std::string& each : run.damaged)
    remark(each);
  const std::string others = others_text(choice, run);
  if (!others.empty()) remark(others);
  if (all) return std::move(*all);
  const bool is_selected = !choice.program.empty();
  std::string problem = "the program wrote no profile";
  if (is_selected)
    problem = "no process that was asked for wrote a profile";
  else if (WIFSIGNALED(run.status))
    problem += fmt::format(": it was ended by {}", bench::status_text(run.status));
  throw CommandError(exit_failure, fmt::format("{}: {}", subcommand, problem));
}

}  // namespace sluice::cli::profile
