// Parses and merges the records of libsluice-latency.so. Open it with latency_format.h.
#include "latency.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "latency_format.h"

namespace bench {
namespace {

/// The words of a file, a line at a time. What is not as wanted throws.
class Records {
 public:
  Records(const std::filesystem::path& path) : path_(path), file_(path) {
    if (!file_) throw std::runtime_error(fmt::format("{} cannot be read", path.string()));
  }

  /// Returns: false at the end of the file.
  bool next_line() {
    if (file_.peek() == std::ifstream::traits_type::eof() && !file_.bad()) return false;
    std::getline(file_, line_);
    check(!file_.bad() && !file_.eof());  // the last line ends too
    ++number_;
    rest_ = line_;
    return true;
  }

  void expect_line(std::string_view first) { check(next_line() && word() == first); }

  /// Returns: the next word of the line; an empty one after the last.
  std::string_view word() {
    const std::string_view found = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(std::min(found.size() + 1, rest_.size()));
    return found;
  }

  std::uint64_t number() { return number_in(word()); }

  std::uint64_t number_in(std::string_view digits) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    check(error == std::errc() && end == digits.data() + digits.size());
    return value;
  }

  bool has_word() const { return !rest_.empty(); }
  void expect_end() const { check(!has_word()); }

  void check(bool is_right) const {
    if (!is_right) throw std::runtime_error(fmt::format("{} is damaged in line {}", path_.string(), number_));
  }

 private:
  std::filesystem::path path_;
  std::ifstream file_;
  std::string line_;
  std::string_view rest_;
  int number_ = 0;
};

/// A process: how its times become ns.
struct Scale {
  double ns_per_tick, step, overhead;  // the latter two in ticks
  double ns(double ticks) const { return (ticks - overhead) * ns_per_tick; }
};

/// Calls that took from `low` to `high` ns, which can be less than none where an overhead is subtracted.
struct Span {
  double low, high;
  std::uint64_t calls;
};

/// Calls of one kind, of all processes.
struct Samples {
  std::vector<Span> spans;
  std::uint64_t count = 0;
  double sum = 0, maximum = 0;
};

/// The times that a bucket stands for. What the timer gave as one value was up to half a step more or less.
Span span_of(unsigned bucket, std::uint64_t calls, const Scale& scale) {
  const auto least = static_cast<double>(latency_least_of(bucket));
  const auto beyond = static_cast<double>(latency_least_of(bucket + 1));
  const double middle = (least + beyond - 1) / 2;
  const double half = std::max(beyond - least, scale.step) / 2;
  return {scale.ns(middle - half), scale.ns(middle + half), calls};
}

/// Reads the rest of the line of a kind.
void read_samples(Records& records, const Scale& scale, Samples& samples) {
  const std::uint64_t count = records.number();
  const auto sum = static_cast<double>(records.number());
  const auto maximum = static_cast<double>(records.number());
  std::uint64_t found = 0;
  std::uint64_t least_bucket = 0;
  while (records.has_word()) {
    const std::string_view word = records.word();
    const std::size_t colon = word.find(':');
    records.check(colon != std::string_view::npos);
    const std::uint64_t bucket = records.number_in(word.substr(0, colon));
    const std::uint64_t calls = records.number_in(word.substr(colon + 1));
    records.check(bucket >= least_bucket && bucket < latency_buckets && calls != 0 && calls <= count - found);
    least_bucket = bucket + 1;
    found += calls;
    samples.spans.push_back(span_of(static_cast<unsigned>(bucket), calls, scale));
  }
  records.check(found == count);
  samples.count += count;
  samples.sum += std::max(0.0, sum - static_cast<double>(count) * scale.overhead) * scale.ns_per_tick;
  samples.maximum = std::max(samples.maximum, scale.ns(maximum));
}

/// The times of samples at percentiles that do not fall.
class Ranks {
 public:
  /// Requires: there are samples, and they are sorted.
  explicit Ranks(const Samples& samples) : samples_(samples), at_(samples.spans.begin()) {}

  double at(double percentile) {
    // A product that rounding has put just above a whole number is that number.
    const double exact = std::ceil(percentile / 100 * static_cast<double>(samples_.count) * (1 - 1e-12));
    const auto rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(exact), 1, samples_.count);
    for (; passed_ + at_->calls < rank; ++at_)
      passed_ += at_->calls;
    const double place = (static_cast<double>(rank - passed_) - 0.5) / static_cast<double>(at_->calls);
    // The spans of several processes may overlap.
    latest_ = std::max(latest_, at_->low + place * (at_->high - at_->low));
    return std::min(latest_, samples_.maximum);
  }

 private:
  const Samples& samples_;
  std::vector<Span>::const_iterator at_;
  std::uint64_t passed_ = 0;  // calls of the spans before this one
  double latest_ = 0;         // no call took less
};

LatencyCurve curve_of(Samples samples) {
  LatencyCurve curve;
  if (samples.count == 0) return curve;
  std::sort(samples.spans.begin(), samples.spans.end(),
            [](const Span& one, const Span& other) { return one.low + one.high < other.low + other.high; });
  curve.count = samples.count;
  curve.mean = samples.sum / static_cast<double>(samples.count);
  curve.max = samples.maximum;
  Ranks ranks(samples);
  curve.p50 = ranks.at(50);
  curve.p90 = ranks.at(90);
  curve.p99 = ranks.at(99);
  curve.p99_9 = ranks.at(99.9);
  curve.p99_99 = ranks.at(99.99);

  constexpr int nines = 5, points_per_nine = 10;
  Ranks again(samples);
  for (int i = 0; i <= nines * points_per_nine; ++i) {
    const double percentile = 100 * (1 - std::pow(10, -static_cast<double>(i) / points_per_nine));
    curve.points.emplace_back(percentile, again.at(percentile));
  }
  curve.points.emplace_back(100, samples.maximum);
  return curve;
}

}  // namespace

Latency read_latency(const std::filesystem::path& file) {
  Records records(file);
  Latency latency;
  std::array<Samples, latency_kinds> samples;
  while (records.next_line()) {
    records.check(records.word() == "latency");
    const std::uint64_t process = records.number();
    const std::string timer(records.word());
    records.check(timer == "tsc" || timer == "clock");
    const auto step = static_cast<double>(records.number());
    const double overhead = static_cast<double>(records.number()) / 1000;
    const auto ticks = static_cast<double>(records.number());
    const auto nanoseconds = static_cast<double>(records.number());
    records.expect_end();
    records.check(step != 0 && ticks != 0 && nanoseconds != 0);
    const Scale scale{nanoseconds / ticks, step, overhead};

    for (std::size_t kind = 0; kind < latency_kinds; ++kind) {
      records.expect_line(latency_kind_names[kind]);
      read_samples(records, scale, samples[kind]);
    }
    records.expect_line("end");
    records.check(records.number() == process);
    records.expect_end();

    latency.timer = latency.timer.empty() || latency.timer == timer ? timer : "mixed";
    latency.resolution_ns = std::max(latency.resolution_ns, step * scale.ns_per_tick);
    latency.overhead_ns = std::max(latency.overhead_ns, overhead * scale.ns_per_tick);
    ++latency.processes;
  }
  latency.allocate = curve_of(std::move(samples[latency_allocate]));
  latency.release = curve_of(std::move(samples[latency_release]));
  latency.resize = curve_of(std::move(samples[latency_resize]));
  return latency;
}

}  // namespace bench
