// Reads or makes profiles, chooses among those of several processes, and writes the reports. Open it with profile.hpp.
#include "profile.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "exports.hpp"
#include "file.hpp"
#include "html_report.hpp"
#include "json_parts.hpp"
#include "measure/process.hpp"
#include "output_file.hpp"
#include "proto.hpp"
#include "run.hpp"
#include "symbolize.hpp"
#include "text.hpp"

namespace sluice::cli::profile {
namespace {

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

// Where reports go; opened before anything is run.
class Reports {
 public:
  explicit Reports(const ProfileRequest& request)
      : request_(request),
        html_(request.html),
        pprof_(request.pprof),
        collapsed_(path_of_collapsed()),
        dhat_(request.dhat) {}

  // Text goes to standard output, or beside what a program prints there to standard error.
  void write(const Profile& profile, std::FILE* text_stream) {
    const Stacks stacks = stacks_of(profile);
    check_measure(stacks);
    const Measure order = request_.sort.value_or(usual_order(stacks));
    if (!request_.html.empty()) html_.write(report_as_html(page_document(profile, stacks, order)));
    if (!request_.pprof.empty()) pprof_.write(gzipped(encoded(profile)));
    if (!request_.collapsed.empty()) collapsed_.write(collapsed_text(stacks, order));
    if (!request_.dhat.empty()) dhat_.write(bench::json_text(dhat_document(profile, stacks)));
    if (request_.text || !request_.writes_reports())
      fmt::print(text_stream, "{}", report_text(profile, stacks, text_options(text_stream, order)));
  }

  TextOptions text_options(std::FILE* stream, Measure order) const {
    const bool is_error = stream == stderr;
    const bench::Look look = is_error ? bench::Look{.width = request_.wide ? 0 : bench::terminal_columns(STDERR_FILENO)}
                                      : bench::look_of_output(request_.wide, false);
    return {.order = order, .top = request_.top, .look = look};
  }

 private:
  std::string path_of_collapsed() const { return request_.collapsed == "-" ? "/dev/stdout" : request_.collapsed; }

  // A profile of another program may lack some values.
  void check_measure(const Stacks& stacks) const {
    if (request_.sort && !stacks.is_known[value_of(*request_.sort)])
      throw CommandError(
          exit_usage, fmt::format("profile: --sort: the profile does not tell what is {}", title_of(*request_.sort)));
  }

  const ProfileRequest& request_;
  OutputFile html_, pprof_, collapsed_, dhat_;
};

void merge_into(Profile& into, const Profile& other, const std::string& source) {
  if (!merge(into, other))
    throw CommandError(
        exit_usage,
        fmt::format("{}: cannot be merged with the one before: it has other values or another rate", source));
}

Profile merged_files(const std::vector<std::string>& files) {
  if (std::count(files.begin(), files.end(), "-") > 1)
    throw CommandError(exit_usage, "profile: standard input can be one profile only");
  Profile all = read_profile(files.front());
  for (size_t i = 1; i < files.size(); ++i)
    merge_into(all, read_profile(files[i]), files[i]);
  return all;
}

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

bool is_wanted(const ProfileRequest& request, const ProfiledRun& run, const ProcessProfile& process) {
  if (request.all) return true;
  if (!request.program.empty()) {
    const std::string name = name_of(process);
    return name == request.program || name.substr(name.rfind('/') + 1) == request.program;
  }
  return process.pid == run.pid;
}

// The other processes, those that allocated most first.
std::string others_text(const ProfileRequest& request, const ProfiledRun& run) {
  std::vector<std::pair<double, std::string>> others;
  for (const ProcessProfile& each : run.processes)
    if (!is_wanted(request, run, each)) {
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

Profile profile_of_run(const ProfileRequest& request, const ProfiledRun& run) {
  std::optional<Profile> all;
  for (const ProcessProfile& each : run.processes) {
    if (!is_wanted(request, run, each)) continue;
    if (all)
      merge_into(*all, each.profile, fmt::format("pid {}", each.pid));
    else
      all = each.profile;
  }
  for (const std::string& each : run.damaged)
    remark(each);
  const std::string others = others_text(request, run);
  if (!others.empty()) remark(others);
  if (all) return std::move(*all);
  const bool is_selected = !request.program.empty();
  throw CommandError(exit_failure, is_selected ? "profile: no process that was asked for wrote a profile"
                                   : WIFSIGNALED(run.status)
                                       ? fmt::format("profile: the program wrote no profile: it was ended by {}",
                                                     bench::status_text(run.status))
                                       : std::string("profile: the program wrote no profile"));
}

// Returns: the status of the program, as wait() has it.
int profile_program(const ProfileRequest& request) {
  Reports reports(request);
  ProfiledRun run;
  try {
    run = run_profiled(request.run, request.rate);
  } catch (const ProgramNotStarted& problem) {
    return W_EXITCODE(problem.code(), 0);
  }
  try {
    Profile profile = profile_of_run(request, run);
    add_names(profile);
    reports.write(profile, stderr);
  } catch (const CommandError& error) {
    if (run.status == 0) throw;
    remark(error.what());  // the program's own failure is what counts
  }
  return run.status;
}

Profile named_profile(const std::string& file) {
  Profile profile = read_profile(file);
  add_names(profile);
  return profile;
}

void print_difference(const ProfileRequest& request) {
  const Reports reports(request);
  const Profile before = named_profile(request.diff[0]), after = named_profile(request.diff[1]);
  const Stacks before_stacks = stacks_of(before), after_stacks = stacks_of(after);
  fmt::print("{}", difference_text({request.diff[0], &before, &before_stacks}, {request.diff[1], &after, &after_stacks},
                                   reports.text_options(stdout, request.sort.value_or(Measure::inuse))));
}

}  // namespace

int profile_memory(const ProfileRequest& request) {
  check_different({request.html, request.pprof, request.collapsed, request.dhat});
  occupy_standard_descriptors();
  if (!request.run.command.empty()) {
    const int status = profile_program(request);
    finish_output();
    return pass_on(status);
  }
  if (!request.diff.empty()) {
    print_difference(request);
    return exit_success;
  }
  Reports reports(request);
  Profile profile = merged_files(request.files);
  add_names(profile);
  reports.write(profile, stdout);
  return exit_success;
}

}  // namespace sluice::cli::profile
