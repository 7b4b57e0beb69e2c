// A finished benchmark as tables for a terminal and in Markdown, and as JSON. Open it to change what they show.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "bench/results.hpp"
#include "measure/terminal.hpp"

namespace bench {

/// The tables as aligned text: time, memory, memory at rest and latency; where several numbers of threads were run, the
/// speed-up of each case; and, where variants were run, the benefit of scopes and frames and that of the library's
/// components. The best of a row is green where there are colours. Of the
/// columns that do not fit, those of sluice and of the baseline are left out last.
std::string results_as_text(const Results& results, const Look& look);

/// The same tables in Markdown, under a line that says what machine they come from.
std::string results_as_markdown(const Results& results);

/// Everything: the machine, the allocators, every sample, median, interval and ratio. scenarios/README.md lists the
/// fields.
nlohmann::ordered_json results_as_json(const Results& results);

}  // namespace bench
