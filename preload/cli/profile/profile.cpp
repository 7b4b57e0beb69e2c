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

#include "choice.hpp"
#include "exports.hpp"
#include "file.hpp"
#include "html_report.hpp"
#include "json_parts.hpp"
#include "output_file.hpp"
#include "proto.hpp"
#include "run.hpp"
#include "text.hpp"

namespace sluice::cli::profile {
namespace {

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
  std::string path_of_collapsed() const { return request_.collapsed == "-" ? standard_output : request_.collapsed; }

  // A profile of another program may lack some values.
  void check_measure(const Stacks& stacks) const {
    if (request_.sort && !stacks.is_known[value_of(*request_.sort)])
      throw CommandError(
          exit_usage, fmt::format("profile: --sort: the profile does not tell what is {}", title_of(*request_.sort)));
  }

  const ProfileRequest& request_;
  OutputFile html_, pprof_, collapsed_, dhat_;
};

Profile merged_files(const std::vector<std::string>& files) {
  if (std::count(files.begin(), files.end(), "-") > 1)
    throw CommandError(exit_usage, "profile: standard input can be one profile only");
  Profile all = read_profile(files.front());
  for (size_t i = 1; i < files.size(); ++i)
    merge_into(all, read_profile(files[i]), files[i]);
  return all;
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
    Profile profile = chosen_profile(run, {request.all, request.program}, "profile");
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
