// Starts a microbenchmark, and says in its output which version of each peer it was built with. Open it to add a peer.
//
// The benchmarks of one row run one after another, so that a slow moment of the machine meets all of them.
// MICRO_ROUND=N in the environment lets each row begin with another of them.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "micro.hpp"

#if MICRO_BOOST
#include <boost/version.hpp>
#endif
#if MICRO_FMT
#include <fmt/core.h>
#endif
#if MICRO_LLVM
#include <llvm/Config/llvm-config.h>
#endif

namespace micro {
namespace {

struct Entry {
  std::string who;
  std::function<void(benchmark::State&)> body;
};
struct Row {
  std::string name;
  std::vector<Entry> entries;
};
std::vector<Row> rows;

void register_rows(std::size_t round) {
  for (Row& row : rows) {
    std::rotate(row.entries.begin(), row.entries.begin() + static_cast<std::ptrdiff_t>(round % row.entries.size()),
                row.entries.end());
    for (Entry& entry : row.entries)
      benchmark::RegisterBenchmark((row.name + "/" + entry.who).c_str(), std::move(entry.body));
  }
}

}  // namespace

void add(const std::string& component, const std::string& what, const std::string& who,
         std::function<void(benchmark::State&)> body) {
  const std::string name = component + "/" + what;
  auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& known) { return known.name == name; });
  if (row == rows.end()) row = rows.insert(rows.end(), {name, {}});
  row->entries.push_back({who, std::move(body)});
}

}  // namespace micro

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
#if defined(__clang__)
  benchmark::AddCustomContext("compiler", "clang " __clang_version__);
#else
  benchmark::AddCustomContext("compiler", "g++ " __VERSION__);
#endif
#if MICRO_BOOST
  benchmark::AddCustomContext("boost", BOOST_LIB_VERSION);
#endif
#if MICRO_ABSL
  benchmark::AddCustomContext("absl", MICRO_ABSL_VERSION);
#endif
#if MICRO_LLVM
  benchmark::AddCustomContext("LLVM", LLVM_VERSION_STRING);
#endif
#if MICRO_FMT
  benchmark::AddCustomContext("fmt", std::to_string(FMT_VERSION / 10000) + "." +
                                         std::to_string(FMT_VERSION / 100 % 100) + "." +
                                         std::to_string(FMT_VERSION % 100));
#endif
  micro::add_all();
  const char* const round = std::getenv("MICRO_ROUND");
  micro::register_rows(round != nullptr ? std::strtoul(round, nullptr, 10) : 0);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
