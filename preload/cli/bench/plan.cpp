// Counts runs and rests. Open it with plan.hpp.
#include "bench/plan.hpp"

#include <fmt/core.h>

#include <set>

#include "measure/progress.hpp"

namespace bench {
namespace {

std::string counted(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// A scenario with several numbers of threads counts once.
std::string scenarios_text(const Results& results) {
  std::set<std::string> names;
  bool is_any_curve = false;
  for (const Scenario& each : results.scenarios) {
    names.insert(each.curve.empty() ? each.name : each.curve);
    is_any_curve = is_any_curve || !each.curve.empty();
  }
  const std::string text = counted(names.size(), "scenario");
  return is_any_curve ? fmt::format("{} with {} threads", text, counts_text(results.settings.threads)) : text;
}

}  // namespace

bool rests(const Scenario& scenario, const RunSettings& settings) {
  return settings.quiet.count() != 0 && scenario.is_plain() && !scenario.real;
}

Plan plan_of(const Results& results, bool has_latency) {
  const std::size_t allocators = results.allocators.size();
  Plan plan;
  plan.rest_seconds = static_cast<double>(results.settings.quiet.count()) / 1000;
  for (const Scenario& each : results.scenarios) {
    plan.watched += allocators;
    plan.timed += allocators * results.rounds;
    if (rests(each, results.settings)) plan.rests += allocators;
    if (has_latency && each.is_plain()) plan.with_latency += allocators;
  }
  return plan;
}

std::string plan_text(const Results& results, const Plan& plan) {
  std::string text = fmt::format("{} under {}: {} in which memory is read", scenarios_text(results),
                                 counted(results.allocators.size(), "allocator"), counted(plan.watched, "run"));
  if (plan.rests != 0)
    text += fmt::format(", {} with {:g} s of rest at the end (--quiesce)",
                        plan.rests == plan.watched ? "each" : fmt::format("{} of them", plan.rests), plan.rest_seconds);
  text += fmt::format("; {}", counted(plan.timed, "timed run"));
  if (plan.with_latency != 0)
    text += fmt::format("; {} in which each call is timed", counted(plan.with_latency, "run"));
  const double total = plan.rest() + plan.seconds_of_a_run * static_cast<double>(plan.runs());
  text += fmt::format(". About {} if a run takes {:g} s", time_left_text(total), plan.seconds_of_a_run);
  if (plan.rest() >= 1) text += fmt::format(", {} of it rest", time_left_text(plan.rest()));
  return text + ".";
}

}  // namespace bench
