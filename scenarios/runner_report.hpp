// The three forms of a finished benchmark: tables for a terminal, Markdown, JSON. Open it to change what they
// show.
#pragma once

#include <string>

#include "runner_results.hpp"

namespace bench {

/// The tables as aligned text: time, memory and, where variants were run, the benefit of scopes and frames and that of
/// the library's components.
std::string as_text(const Results& results);

/// The same tables in Markdown, under a line that says what machine they come from.
std::string as_markdown(const Results& results);

/// Everything: the machine, the allocators, every sample, median and ratio. README.md lists the fields.
std::string as_json(const Results& results);

}  // namespace bench
