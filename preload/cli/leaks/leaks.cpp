// Runs the program or reads the files, and writes the reports. Open it with leaks.hpp.
#include "leaks.hpp"

#include <cstdio>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "json_parts.hpp"
#include "output_file.hpp"
#include "profile/choice.hpp"
#include "profile/file.hpp"
#include "profile/run.hpp"
#include "report.hpp"
#include "text.hpp"

namespace sluice::cli::leaks {
namespace {

using profile::Profile;

// What stays the same for a request: opened before anything is run.
class Output {
 public:
  explicit Output(const LeaksRequest& request)
      : request_(request),
        suppressions_(request.suppressions.empty() ? Suppressions() : Suppressions::read(request.suppressions)),
        json_(request.json == "-" ? standard_output : request.json) {}

  // Text goes to standard output, or beside what a program prints there to standard error.
  LeakReport write(const Profile& profile, const std::string& since, int64_t born_since, std::FILE* stream) {
    LeakReport report = report_of(profile, suppressions_, born_since);
    if (!request_.json.empty()) json_.write(bench::json_text(report_document(profile, report, since)));
    if (request_.json != "-" || stream == stderr)
      fmt::print(stream, "{}", report_text(profile, report, options(since, stream)));
    return report;
  }

 private:
  TextOptions options(const std::string& since, std::FILE* stream) const {
    const bool is_error = stream == stderr;
    const bench::Look look = is_error ? bench::Look{.width = request_.wide ? 0 : bench::terminal_columns(STDERR_FILENO)}
                                      : bench::look_of_output(request_.wide, false);
    return {.top = request_.top, .reachable = request_.reachable, .since = since, .look = look};
  }

  const LeaksRequest& request_;
  const Suppressions suppressions_;
  OutputFile json_;
};

// The status with which the command ends, beside one that tells of the program's own failure.
int verdict(const LeaksRequest& request, const Profile& profile, const LeakReport& report) {
  if (request.error_exitcode == 0) return exit_success;
  if (!report.has_leaks() && profile.number_fact("dropped") != 0)
    throw CommandError(exit_failure, "leaks: --error-exitcode: more was allocated than is known of");
  if (!report.is_known) throw CommandError(exit_failure, "leaks: --error-exitcode: it is not known what is leaked");
  return report.has_leaks() ? request.error_exitcode : exit_success;
}

// Returns: the status of the program, as wait() has it, or that of the verdict.
int leaks_of_program(const LeaksRequest& request) {
  Output output(request);
  profile::ProfiledRun run;
  try {
    run = profile::run_profiled(request.run, request.exact ? "1" : request.rate, request.exact);
  } catch (const profile::ProgramNotStarted& problem) {
    return W_EXITCODE(problem.code(), 0);
  }
  try {
    Profile profile = profile::chosen_profile(run, {request.all, request.program}, "leaks");
    profile::add_names(profile);
    const LeakReport report = output.write(profile, "", 0, stderr);
    if (run.status == 0) return W_EXITCODE(verdict(request, profile, report), 0);
  } catch (const CommandError& error) {
    if (run.status == 0) throw;
    profile::remark(error.what());  // the program's own failure is what counts
  }
  return run.status;
}

Profile named(const std::string& file) {
  Profile profile = profile::read_profile(file);
  profile::add_names(profile);
  return profile;
}

// The number of the first of two profiles of one process. Throws: CommandError where they are none.
int64_t number_of_first(const Profile& first, const Profile& second, const LeaksRequest& request) {
  const uint64_t number = first.number_fact("number");
  const bool is_one_process = first.number_fact("pid") != 0 && first.fact("pid") == second.fact("pid") &&
                              first.fact("program") == second.fact("program");
  constexpr int64_t apart = 60'000'000'000;  // clocks are set
  const int64_t difference = first.time_nanos - second.time_nanos;
  if (!is_one_process || difference > apart || difference < -apart)
    throw CommandError(exit_usage,
                       fmt::format("leaks: {} and {} are not of one process; `sluice profile --diff` compares them",
                                   request.files[0], request.files[1]));
  if (number == 0 || number >= second.number_fact("number"))
    throw CommandError(exit_usage,
                       fmt::format("leaks: {} was not written before {}", request.files[0], request.files[1]));
  return static_cast<int64_t>(number);
}

int leaks_of_files(const LeaksRequest& request) {
  Output output(request);
  if (request.files.size() == 1) {
    const Profile profile = named(request.files[0]);
    return verdict(request, profile, output.write(profile, "", 0, stdout));
  }
  const Profile first = profile::read_profile(request.files[0]);
  const Profile second = named(request.files[1]);
  const int64_t number = number_of_first(first, second, request);
  return verdict(request, second, output.write(second, request.files[0], number, stdout));
}

}  // namespace

int find_leaks(const LeaksRequest& request) {
  occupy_standard_descriptors();
  if (request.run.command.empty()) return leaks_of_files(request);
  const int status = leaks_of_program(request);
  finish_output();
  return profile::pass_on(status);
}

}  // namespace sluice::cli::leaks
