// What a heap profile says about the code, site by site: figures, and the page that explains what they are good for.
// Open it to add a finding.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../profile/sites.hpp"

namespace sluice::cli::advise {

struct Finding {
  std::string kind;   // in JSON: "short-lived", "other-thread", "rounding", "growth", "small-and-many"
  std::string site;   // "parse  parse.cpp:12"
  std::string seen;   // with figures
  std::string page;   // where to read on
  double weight = 0;  // the part of all blocks or bytes that it is about; those with most come first
  nlohmann::ordered_json figures = {};
};

// Returns: the findings, the weightiest first. A site that holds a twentieth of nothing is not worth a word.
std::vector<Finding> findings_of(const profile::Stacks& stacks);

}  // namespace sluice::cli::advise
