// Leaks as text for a terminal, and as JSON. Open it to change how they look.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "measure/terminal.hpp"
#include "profile/model.hpp"
#include "report.hpp"

namespace sluice::cli::leaks {

struct TextOptions {
  size_t top = 20;
  bool reachable = false;
  std::string since = {};  // the profile after which blocks were born; empty: any
  bench::Look look = {};
};

std::string report_text(const profile::Profile& profile, const LeakReport& report, const TextOptions& options);

// Schema "sluice-leaks 1".
nlohmann::ordered_json report_document(const profile::Profile& profile, const LeakReport& report,
                                       const std::string& since);

}  // namespace sluice::cli::leaks
