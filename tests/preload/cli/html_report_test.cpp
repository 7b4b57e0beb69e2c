// The page of a report as text: the document stands in it whole, and nothing in the document ends the element that it
// stands in. What a browser makes of the page, html_report.py tells.
#include "html_report.hpp"

#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace {

using nlohmann::ordered_json;
using sluice::cli::report_as_html;

constexpr std::string_view begin = "<script type=\"application/json\" id=\"document\">";
constexpr std::string_view end = "</script>";

// Returns: what a browser takes for the document.
std::string document_in(const std::string& page) {
  const std::size_t first = page.find(begin);
  EXPECT_NE(first, std::string::npos);
  const std::size_t start = first + begin.size();
  return page.substr(start, page.find(end, start) - start);
}

ordered_json with_text(const std::string& text) {
  return {{"schema", "sluice-compare 1"}, {text, {text, {{"inner", text}}}}};
}

TEST(HtmlReport, HoldsTheDocumentUnchanged) {
  const ordered_json number = 0.1 + 0.2;
  for (const ordered_json& document :
       {ordered_json::object(), ordered_json(nullptr), number, with_text("plain"), with_text("ünï\u2028\U0001f642"),
        with_text(std::string("\0\x01\n\t\"\\/\x7f", 8)), with_text("@DOCUMENT@ @SCRIPTS@ $1 ${x}")})
    EXPECT_EQ(ordered_json::parse(document_in(report_as_html(document))), document);
}

TEST(HtmlReport, NoTextBecomesMarkup) {
  for (const char* const text : {"</script>", "</SCRIPT >", "<!--", "<!--<script>", "-->", "<img src=x onerror=fail()>",
                                 "]]>", "&lt;/script&gt;", "\\u003c/script>", "\\</script>"}) {
    const std::string page = report_as_html(with_text(text));
    const std::string data = document_in(page);
    EXPECT_EQ(data.find('<'), std::string::npos) << text;
    EXPECT_EQ(ordered_json::parse(data), with_text(text));
  }
}

TEST(HtmlReport, PagesDifferInTheDocumentAlone) {
  const std::string one = report_as_html(with_text("</script><script>fail()</script>"));
  const std::string other = report_as_html(nullptr);
  EXPECT_EQ(one.size() - document_in(one).size(), other.size() - document_in(other).size());
  EXPECT_EQ(one.find("<!DOCTYPE html>"), 0U);
  EXPECT_TRUE(one.ends_with("</html>\n"));
}

TEST(HtmlReport, ReplacesWhatIsNoUtf8) {
  const std::string data = document_in(report_as_html(ordered_json::array({"a\xff\xc3"})));
  EXPECT_EQ(ordered_json::parse(data), ordered_json::array({"a\ufffd\ufffd"}));
}

TEST(HtmlReport, NeedsNoOtherFile) {
  const std::string page = report_as_html(nullptr);
  for (const char* const reference : {"<link rel=\"stylesheet\"", "<script src", "@import", "url("})
    EXPECT_EQ(page.find(reference), std::string::npos) << reference;
}

}  // namespace
