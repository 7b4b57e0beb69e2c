// The options of `sluice compare` and `sluice bench`. Open it to add one.
#pragma once

#include <CLI/CLI.hpp>

#include "bench_command.hpp"
#include "compare.hpp"

namespace sluice::cli {

// Effects: adds the subcommand, whose options are read into the request. Returns: it; that of `bench` has two of its
// own, `list` and `run`.
CLI::App* add_compare(CLI::App& app, CompareRequest& request);
CLI::App* add_bench(CLI::App& app, BenchRequest& request);

}  // namespace sluice::cli
