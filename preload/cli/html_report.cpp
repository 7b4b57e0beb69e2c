// Puts a document into the page that the build has made of the folder report. Open it with html_report.hpp.
#include "html_report.hpp"

#include <cstddef>
#include <string_view>

#include <nlohmann/json.hpp>

#include "report/page.hpp"

namespace sluice::cli {
namespace {

constexpr std::string_view place = "@DOCUMENT@";  // page.cmake sees to it that it stands in the page once

// In JSON a "<" stands inside texts only, where its escape means the same; without it no text ends the element that the
// document stands in, nor begins a comment there.
std::string without_markup(const std::string& json) {
  std::string escaped;
  escaped.reserve(json.size());
  for (const char letter : json) {
    if (letter == '<')
      escaped += "\\u003c";
    else
      escaped += letter;
  }
  return escaped;
}

}  // namespace

std::string report_as_html(const nlohmann::ordered_json& document) {
  const std::string_view page(reinterpret_cast<const char*>(report_page), report_page_size);
  const std::string data =
      without_markup(document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  const std::size_t at = page.find(place);
  std::string html;
  html.reserve(page.size() + data.size());
  html += page.substr(0, at);
  html += data;
  html += page.substr(at + place.size());
  return html;
}

}  // namespace sluice::cli
