// A heap profile in the forms that other tools read. Open it to add one.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "model.hpp"
#include "sites.hpp"

namespace sluice::cli::profile {

// Stacks in the format of flamegraph.pl: a line "main;parse;malloc 1024" for each, the outermost function first.
std::string collapsed_text(const Stacks& stacks, Measure measure);

// The document of the page that --html writes (schema "sluice-profile 1"), which begins with that measure.
nlohmann::ordered_json page_document(const Profile& profile, const Stacks& stacks, Measure order);

// The file of --dhat (DHAT's format, version 2).
nlohmann::ordered_json dhat_document(const Profile& profile, const Stacks& stacks);

}  // namespace sluice::cli::profile
