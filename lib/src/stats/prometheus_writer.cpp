// The statistics as metrics, in the text format of Prometheus (version 0.0.4), for the textfile collector of
// node_exporter. Open it to change what a figure is called there; statistics.def lists the figures.
//
// A figure that only grows is a counter, whose name ends in _total; the others are gauges. What is not counted is left
// out, rather than 0. All samples of one metric stand side by side, and each has the labels program and pid.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stats/figures.hpp"
#include "stats/utf8.hpp"
#include "stats/writers.hpp"

namespace sluice::stats {
namespace {

struct Meaning {
  const char* name;
  Source source;
  const char* text;
};

constexpr Meaning total_meanings[] = {
#define SLUICE_FIGURE_TOTAL(name, source, unit, meaning) {#name, Source::source, meaning},
#include "os/statistics.def"
};
constexpr Meaning resident_meanings[] = {
#define SLUICE_FIGURE_RESIDENT(name, source, unit, meaning) {#name, Source::source, meaning},
#include "os/statistics.def"
};
constexpr Meaning class_meanings[] = {
#define SLUICE_FIGURE_CLASS(name, source, unit, meaning) {#name, Source::source, meaning},
#include "os/statistics.def"
};
constexpr Meaning large_meanings[] = {
#define SLUICE_FIGURE_LARGE(name, source, unit, meaning) {#name, Source::source, meaning},
#include "os/statistics.def"
};
constexpr Meaning arena_meanings[] = {
#define SLUICE_FIGURE_ARENA(name, source, unit, words, meaning) {#name, Source::source, meaning},
#include "os/statistics.def"
};
constexpr Meaning thread_meanings[] = {
#define SLUICE_FIGURE_THREADS(name, source, unit, words, meaning) {#name, Source::source, meaning},
#include "os/statistics.def"
};
constexpr Meaning os_meanings[] = {
#define SLUICE_FIGURE_OS(name, source, unit, words, meaning) {#name, Source::source, meaning},
#include "os/statistics.def"
};
constexpr Meaning foreign_meanings[] = {
#define SLUICE_FIGURE_FOREIGN(name, source, unit, words, meaning) {#name, Source::source, meaning},
#include "os/statistics.def"
};

constexpr bool contains(std::string_view text, std::string_view part) noexcept {
  for (size_t i = 0; i + part.size() <= text.size(); ++i)
    if (std::string_view(text.data() + i, part.size()) == part) return true;
  return false;
}

// A highest value can stay, a sum over all time only grows.
constexpr bool is_counter(const Meaning& of) noexcept {
  return of.source != Source::state && !contains(of.name, "peak");
}

class Metrics {
 public:
  Metrics(Print& out, const ProcessInfo& process, bool counting) noexcept
      : out_(out), process_(process), counting_(counting) {}

  bool has(const Meaning& of) const noexcept { return counting_ || !is_counted(of.source); }

  void head(const char* section, const Meaning& of) noexcept {
    out_.text("# HELP ");
    name(section, of);
    out_.character(' ').text(of.text).text("\n# TYPE ");
    name(section, of);
    out_.text(is_counter(of) ? " counter\n" : " gauge\n");
  }

  // `block_size`: of a class; 0: none.
  void sample(const char* section, const Meaning& of, uint64_t value, uint32_t block_size) noexcept {
    name(section, of);
    labels();
    if (block_size != 0) out_.text(",block_size=\"").decimal(block_size).character('"');
    out_.text("} ").decimal(value).character('\n');
  }

  template <typename Figures, size_t count>
  void section(const char* section, const Figure<Figures> (&table)[count], const Meaning (&meanings)[count],
               const Figures& figures) noexcept {
    for (size_t i = 0; i != count; ++i) {
      if (!has(meanings[i])) continue;
      head(section, meanings[i]);
      sample(section, meanings[i], figures.*table[i].member, 0);
    }
  }

  void info() noexcept {
    out_.text("# HELP sluice_info Version of the allocator.\n# TYPE sluice_info gauge\nsluice_info");
    labels();
    out_.text(",version=");
    quoted(process_.version);
    out_.text("} 1\n");
  }

 private:
  void name(const char* section, const Meaning& of) noexcept {
    out_.text("sluice_").text(section).text(of.name).text(is_counter(of) ? "_total" : "");
  }

  void labels() noexcept {
    out_.text("{program=");
    quoted(process_.program != nullptr ? process_.program : "");
    out_.text(",pid=\"").decimal(process_.pid).character('"');
  }

  // The format takes UTF-8 only.
  void quoted(std::string_view text) noexcept {
    out_.character('"');
    while (!text.empty()) {
      const size_t length = utf8_length(text);
      const char first = text.front();
      if (length == 0)
        out_.character('?');
      else if (first == '\n')
        out_.text("\\n");
      else if (first == '"' || first == '\\')
        out_.character('\\').character(first);
      else
        out_.text({text.data(), length});
      text.remove_prefix(length == 0 ? 1 : length);
    }
    out_.character('"');
  }

  Print& out_;
  const ProcessInfo& process_;
  const bool counting_;
};

void write_classes(Metrics& metrics, const Snapshot& s) noexcept {
  for (size_t i = 0; i != sizeof class_figures / sizeof *class_figures; ++i) {
    if (!metrics.has(class_meanings[i])) continue;
    bool is_first = true;
    for (const ClassFigures& figures : s.classes) {
      if (!is_used(figures)) continue;
      if (is_first) metrics.head("class_", class_meanings[i]);
      is_first = false;
      metrics.sample("class_", class_meanings[i], figures.*class_figures[i].member, figures.block_size);
    }
  }
}

}  // namespace

void write_prometheus(Print& out, const Snapshot& s, const ProcessInfo& process) noexcept {
  Metrics metrics(out, process, s.counting);
  metrics.info();
  metrics.section("", total_figures, total_meanings, s);
  metrics.section("resident_", resident_figures, resident_meanings, s.resident);
  write_classes(metrics, s);
  metrics.section("large_", large_figures, large_meanings, s.large);
  metrics.section("arena_", arena_figures, arena_meanings, s.arena);
  metrics.section("threads_", thread_figures, thread_meanings, s.threads);
  metrics.section("os_", os_figures, os_meanings, s.os);
  metrics.section("foreign_", foreign_figures, foreign_meanings, s.foreign);
}

}  // namespace sluice::stats
