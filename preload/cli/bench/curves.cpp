// Divides times of several numbers of threads. Open it with curves.hpp.
#include "bench/curves.hpp"

#include <algorithm>
#include <utility>

namespace bench {
namespace {

/// The curve of that case of a scenario, which is begun if there is none yet.
Curve& curve_among(std::vector<Curve>& curves, const Scenario& scenario, const std::string& name) {
  const auto place = std::find_if(curves.begin(), curves.end(), [&](const Curve& each) {
    return each.scenario == scenario.curve && each.name == name;
  });
  if (place != curves.end()) return *place;
  curves.push_back({scenario.curve, name, {}});
  return curves.back();
}

void fill_in(const Results& results, Curve& curve) {
  const CurvePoint& fewest = curve.points.front();
  for (CurvePoint& point : curve.points) {
    for (std::size_t i = 0; i < results.allocators.size(); ++i)
      point.allocators.push_back(figures_at(point.threads, results.time.median(*point.row, i), fewest.threads,
                                            results.time.median(*fewest.row, i)));
  }
}

}  // namespace

CurveFigures figures_at(std::uint64_t threads, std::optional<double> nanoseconds, std::uint64_t fewest_threads,
                        std::optional<double> fewest_nanoseconds) {
  CurveFigures figures{nanoseconds, {}, {}};
  if (!nanoseconds || *nanoseconds <= 0 || !fewest_nanoseconds || *fewest_nanoseconds <= 0) return figures;
  figures.speed_up = *fewest_nanoseconds / *nanoseconds;
  figures.of_linear = *figures.speed_up * static_cast<double>(fewest_threads) / static_cast<double>(threads);
  return figures;
}

std::vector<Curve> curves_of(const Results& results) {
  std::vector<Curve> curves;
  for (const Scenario& scenario : results.scenarios) {
    if (scenario.curve.empty()) continue;
    const std::size_t suffix = scenario.point().size();
    for (const Row& row : results.time.rows()) {
      if (row.scenario != scenario.name) continue;
      Curve& curve = curve_among(curves, scenario, row.name.substr(0, row.name.size() - suffix));
      curve.points.push_back({*scenario.threads, &row, {}});
    }
  }
  std::erase_if(curves, [](const Curve& curve) { return curve.points.size() < 2; });
  for (Curve& curve : curves)
    fill_in(results, curve);
  return curves;
}

bool is_over_committed(const Results& results, const CurvePoint& point) {
  return results.processors > 0 && point.threads > static_cast<std::uint64_t>(results.processors);
}

}  // namespace bench
