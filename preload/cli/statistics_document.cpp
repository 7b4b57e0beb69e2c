// The figures of a statistics dump as tables in Markdown, for lib/src/stats/README.md (scripts/document-statistics).
// Open it to change how they look; what is in them comes from os/statistics.def.
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "documents.hpp"
#include "stats/figures.hpp"

namespace sluice::cli {
namespace {

using stats::Source;

struct Row {
  const char* name;
  Source source;
  const char* meaning;
};

void print_table(std::string_view section, const std::vector<Row>& rows) {
  fmt::print("<!-- figures: {} -->\n| field | meaning |\n|---|---|\n", section);
  for (const Row& row : rows)
    fmt::print("| `{}`{} | {} |\n", row.name, stats::is_counted(row.source) ? " **c**" : "", row.meaning);
  fmt::print("<!-- end of figures -->\n");
}

}  // namespace

void print_statistics_tables() {
#define SLUICE_PLAIN_ROW(name, source, unit, meaning) {#name, Source::source, meaning},
#define SLUICE_ROW(name, source, unit, words, meaning) {#name, Source::source, meaning},
  print_table("totals", {
#define SLUICE_FIGURE_TOTAL SLUICE_PLAIN_ROW
#include "os/statistics.def"
                        });
  print_table("resident", {
#define SLUICE_FIGURE_RESIDENT SLUICE_PLAIN_ROW
#include "os/statistics.def"
                          });
  print_table("classes", {
#define SLUICE_FIGURE_CLASS SLUICE_PLAIN_ROW
#define SLUICE_FIGURE_CLASS_DERIVED(name, value, source, unit, meaning) {#name, Source::source, meaning},
#include "os/statistics.def"
                         });
  print_table("large", {
#define SLUICE_FIGURE_LARGE SLUICE_PLAIN_ROW
#include "os/statistics.def"
                       });
  print_table("arena", {
#define SLUICE_FIGURE_ARENA SLUICE_ROW
#include "os/statistics.def"
                       });
  print_table("threads", {
#define SLUICE_FIGURE_THREADS SLUICE_ROW
#include "os/statistics.def"
                         });
  print_table("os", {
#define SLUICE_FIGURE_OS SLUICE_ROW
#include "os/statistics.def"
                    });
  print_table("foreign", {
#define SLUICE_FIGURE_FOREIGN SLUICE_ROW
#include "os/statistics.def"
                         });
}

}  // namespace sluice::cli
