// Whether more or less of a figure is better, as the words around it tell in what programs really print.
#include "measure/direction.hpp"

#include <gtest/gtest.h>

#include <string>

namespace bench {
namespace {

struct Line {
  const char* before;
  const char* after;
  Better better;
};

TEST(Direction, UnitsAndNamesTellWhatIsBetter) {
  const Line lines[] = {
      {"Requests/sec:  ", "", Better::more},                          // wrk
      {"Requests per second:    ", " [#/sec] (mean)", Better::more},  // ab
      {"Time per request:       ", " [ms] (mean)", Better::less},     // ab
      {"Time per request: ", " (mean)", Better::less},                // without its unit
      {"Transfer rate:          ", " [Kbytes/sec] received", Better::more},
      {"Failed requests:        ", "", Better::less},
      {"SET: ", " requests per second, p50=0.231 msec", Better::more},  // redis-benchmark
      {"SET: 55555.56 requests per second, p50=", " msec", Better::less},
      {"tps = ", " (without initial connection time)", Better::more},  // pgbench
      {"latency average = ", " ms", Better::less},
      {"    transactions:       100    (", " per sec.)", Better::more},  // sysbench
      {"throughput: ", "", Better::more},
      {"avg_latency=", "", Better::less},
      {"  Latency   ", "us   10.2us", Better::less},
      {"p99_ms: ", "", Better::less},
      {"done in ", " seconds", Better::less},
      {"", " ns/op", Better::less},  // of Go
      {"", " MB/s", Better::more},
      {"read errors/s: ", "", Better::less},
      {"Elapsed time (s): ", "", Better::less},
      {"completed in 500 ms: ", " operations", Better::unknown},
      {"in ", " rounds", Better::unknown},
      {"points ", "", Better::unknown},
      {"times ", "", Better::unknown},
  };
  for (const Line& line : lines)
    EXPECT_EQ(better_direction(line.before, line.after), line.better) << line.before << "5" << line.after;
}

TEST(Direction, UnitsThatProgramsChooseAreKnown) {
  EXPECT_EQ(unit_of("us  10us").factor, 1e-6);
  EXPECT_TRUE(unit_of("ms").is_time);
  EXPECT_EQ(unit_of("k requests").factor, 1e3);
  EXPECT_EQ(unit_of("MB").factor, 1e6);
  EXPECT_FALSE(unit_of("MB").is_time);
  EXPECT_EQ(unit_of(" ms").factor, 1);
  EXPECT_EQ(unit_of("snow").factor, 1);
}

TEST(Direction, TitlesAreTheWordsOfTheExpression) {
  EXPECT_EQ(figure_title("Requests/sec: ([0-9.]+)"), "Requests/sec");
  EXPECT_EQ(figure_title("^Requests/sec:\\s+([0-9.]+)"), "Requests/sec");
  EXPECT_EQ(figure_title("SET: ([0-9.]+) requests"), "SET: … requests");
  EXPECT_EQ(figure_title("took (.*)"), "took");
  EXPECT_EQ(figure_title("([0-9.]+) per second"), "per second");
  EXPECT_EQ(figure_title("(a(b)c) [x(] (?:y) \\(z\\)"), "(z)");
  EXPECT_EQ(figure_title("(.*)"), "");
  EXPECT_EQ(figure_title("\\"), "");
  EXPECT_EQ(figure_title(")("), "");
}

}  // namespace
}  // namespace bench
