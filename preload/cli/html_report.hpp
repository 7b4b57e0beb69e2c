// A result as a page for a browser: one file that needs no other and no network. Open it to write one; the folder
// report holds what the page is made of.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace sluice::cli {

// Returns: the page that shows a document of `sluice compare` or of `sluice bench` and holds all of it. No text of the
// document, names of programs and their arguments among them, can become markup or script; what is no UTF-8 in it is
// replaced. Throws: std::bad_alloc.
std::string report_as_html(const nlohmann::ordered_json& document);

}  // namespace sluice::cli
