// The writers of statistics: every figure reaches the JSON, the table says what it must, hostile names do no
// harm.
#include "stats/writers.hpp"

#include <algorithm>
#include <cstring>
#include <regex>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace sluice;
using stats::ProcessInfo;
using stats::Snapshot;
using testing::HasSubstr;
using testing::Not;

int append(void* text, const char* data, size_t size) noexcept {
  static_cast<std::string*>(text)->append(data, size);
  return 0;
}

constexpr ProcessInfo sqlite{1234, "sqlite3", "9.8.7"};

template <typename Write>
std::string written(Write write) {
  std::string text;
  char buffer[61];
  Print out(buffer, sizeof buffer, append, &text);
  write(out);
  EXPECT_EQ(out.finish(), 0);
  return text;
}
std::string text_of(const Snapshot& s, const ProcessInfo& process = sqlite) {
  return written([&](Print& out) { write_text(out, s, process); });
}
std::string json_of(const Snapshot& s, const ProcessInfo& process = sqlite) {
  return written([&](Print& out) { write_json(out, s, process); });
}
std::string prometheus_of(const Snapshot& s, const ProcessInfo& process = sqlite) {
  return written([&](Print& out) { write_prometheus(out, s, process); });
}
std::string xml_of(const Snapshot& s) {
  return written([&](Print& out) { write_xml(out, s); });
}

// A snapshot in which no two figures are equal: the n-th is 1,000,000 + n.
Snapshot distinct_snapshot() {
  Snapshot s;
  std::memset(&s, 0, sizeof s);
  uint64_t next = 1000000;
  const auto fill = [&](auto& figures) {
    uint64_t values[sizeof figures / sizeof(uint64_t)];
    for (uint64_t& value : values)
      value = ++next;
    std::memcpy(&figures, values, sizeof values);
  };
  s.counting = true;
  for (uint64_t* figure : {&s.mallocs, &s.frees, &s.requested_bytes, &s.allocated_bytes, &s.freed_bytes, &s.live_bytes,
                           &s.peak_live_bytes, &s.active_bytes, &s.resident_bytes, &s.reserved_bytes, &s.mapped_bytes,
                           &s.metadata_bytes, &s.cached_bytes, &s.retained_bytes})
    *figure = ++next;
  for (const unsigned c : {1u, 20u, size_class_count - 1}) {
    fill(s.classes[c]);
    s.classes[c].block_size = class_sizes[c];
  }
  fill(s.resident);
  fill(s.large);
  fill(s.arena);
  fill(s.threads);
  fill(s.os);
  fill(s.foreign);
  return s;
}

Snapshot empty_snapshot() {
  Snapshot s;
  std::memset(&s, 0, sizeof s);
  return s;
}

size_t longest_line(const std::string& text) {
  size_t longest = 0;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    longest = std::max(longest, end - start);
    start = end + 1;
  }
  return longest;
}

TEST(JsonWriter, writes_every_figure_of_the_snapshot) {
  const Snapshot s = distinct_snapshot();
  const std::string json = json_of(s);
  constexpr size_t figures = 14 + 3 * 9 + sizeof s.resident / 8 + sizeof s.large / 8 + sizeof s.arena / 8 +
                             sizeof s.threads / 8 + sizeof s.os / 8 + sizeof s.foreign / 8;
  constexpr size_t class_padding = 3;  // the slot that holds a class's block size takes a number of the sequence
  size_t found = 0;
  for (uint64_t value = 1000001; value <= 1000000 + figures + class_padding; ++value)
    found += json.find(": " + std::to_string(value)) != std::string::npos;
  EXPECT_EQ(found, figures);
}

TEST(JsonWriter, starts_with_the_schema_and_the_process) {
  EXPECT_THAT(json_of(empty_snapshot()), testing::StartsWith("{\n"
                                                             "  \"schema\": \"sluice-stats\",\n"
                                                             "  \"schema_version\": 1,\n"
                                                             "  \"version\": \"9.8.7\",\n"
                                                             "  \"pid\": 1234,\n"
                                                             "  \"program\": \"sqlite3\",\n"
                                                             "  \"counting\": false,\n"));
}

TEST(JsonWriter, lists_used_classes_only) {
  Snapshot s = empty_snapshot();
  EXPECT_THAT(json_of(s), HasSubstr("\"classes\": [],"));
  s.classes[3].block_size = 48;
  EXPECT_THAT(json_of(s), HasSubstr("\"classes\": [],"));
  s.classes[3].live_blocks = 2;
  EXPECT_THAT(json_of(s), HasSubstr("{\"block_size\": 48, \"mallocs\": 0,"));
  EXPECT_THAT(json_of(s), HasSubstr("\"live_bytes\": 96, \"live_blocks\": 2,"));
}

TEST(JsonWriter, gives_totals_of_a_class_in_bytes) {
  Snapshot s = empty_snapshot();
  s.classes[2] = {32, 10, 4, 250, 6, 7, 1, 1, 65536, 9};
  EXPECT_THAT(json_of(s),
              HasSubstr("{\"block_size\": 32, \"mallocs\": 10, \"frees\": 4, \"requested_bytes\": 250, "
                        "\"allocated_bytes\": 320, \"freed_bytes\": 128, \"live_bytes\": 192, \"live_blocks\": 6, "
                        "\"peak_live_blocks\": 7, \"cached_blocks\": 1, \"slabs\": 1, \"slab_bytes\": 65536, "
                        "\"carved_blocks\": 9}"));
}

TEST(JsonWriter, escapes_names_so_that_the_output_is_valid_json) {
  const auto program = [](const char* name) {
    const std::string json = json_of(empty_snapshot(), {1, name, "1"});
    const size_t start = json.find("\"program\": ") + 11;
    return json.substr(start, json.find(",\n", start) - start);
  };
  EXPECT_EQ(program("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(program("tab\tbell\a\x7f"), R"("tab\u0009bell\u0007\u007f")");
  EXPECT_EQ(program("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
  EXPECT_EQ(program("\xff\xc3("), R"("\u00ff\u00c3(")");
  EXPECT_EQ(program("\xc0\xaf"), R"("\u00c0\u00af")") << "overlong form of a slash";
  EXPECT_EQ(program("\xed\xa0\x80"), R"("\u00ed\u00a0\u0080")") << "surrogate";
  EXPECT_EQ(program("\xf4\x90\x80\x80"), R"("\u00f4\u0090\u0080\u0080")") << "above U+10FFFF";
  EXPECT_EQ(program("\xe2\x82"), R"("\u00e2\u0082")") << "cut short";
  EXPECT_EQ(program(nullptr), R"("")");
}

TEST(PrometheusWriter, writes_every_figure_of_the_snapshot_and_its_meaning) {
  const std::string text = prometheus_of(distinct_snapshot());
  constexpr size_t figures = 14 + 3 * 9 + sizeof(stats::ResidentFigures) / 8 + sizeof(stats::LargeFigures) / 8 +
                             sizeof(stats::ArenaFigures) / 8 + sizeof(stats::ThreadFigures) / 8 +
                             sizeof(stats::OsFigures) / 8 + sizeof(stats::ForeignFigures) / 8;
  constexpr size_t class_padding = 3;
  size_t found = 0;
  for (uint64_t value = 1000001; value <= 1000000 + figures + class_padding; ++value)
    found += text.find("} " + std::to_string(value) + "\n") != std::string::npos;
  EXPECT_EQ(found, figures);
  EXPECT_LT(text.size(), 128U * 1024);
  EXPECT_THAT(text, HasSubstr("# HELP sluice_live_bytes bytes of the blocks that the program holds\n"
                              "# TYPE sluice_live_bytes gauge\n"
                              "sluice_live_bytes{program=\"sqlite3\",pid=\"1234\"} "));
  EXPECT_THAT(text, HasSubstr("# TYPE sluice_class_frees_total counter\n"
                              "sluice_class_frees_total{program=\"sqlite3\",pid=\"1234\",block_size=\"16\"} "));
}

TEST(PrometheusWriter, leaves_out_what_was_not_counted) {
  Snapshot s = distinct_snapshot();
  s.counting = false;
  const std::string text = prometheus_of(s);
  EXPECT_THAT(text, Not(HasSubstr("sluice_mallocs_total")));
  EXPECT_THAT(text, Not(HasSubstr("peak_live")));
  EXPECT_THAT(text, HasSubstr("sluice_live_bytes{"));
  EXPECT_THAT(text, HasSubstr("sluice_os_mmap_calls_total{"));
}

TEST(PrometheusWriter, escapes_names_and_replaces_what_is_no_utf8) {
  const auto program = [](const char* name) {
    const std::string text = prometheus_of(empty_snapshot(), {1, name, "1"});
    const size_t start = text.find("program=") + 8;
    return text.substr(start, text.find(",pid=", start) - start);
  };
  EXPECT_EQ(program("a\"b\\c\nd"), R"("a\"b\\c\nd")");
  EXPECT_EQ(program("caf\xc3\xa9\xff\xc3("), "\"caf\xc3\xa9?\?(\"");
  EXPECT_EQ(program(nullptr), R"("")");
}

TEST(TextWriter, says_first_who_counted_what) {
  EXPECT_THAT(text_of(empty_snapshot()), testing::StartsWith("sluice 9.8.7: pid 1234, sqlite3\n"));
  EXPECT_THAT(text_of(empty_snapshot(), {7, nullptr, "1"}), testing::StartsWith("sluice 1: pid 7, unknown program\n"));
}

TEST(TextWriter, keeps_control_characters_from_the_terminal) {
  EXPECT_THAT(text_of(empty_snapshot(), {7, "a\x1b[31m\nb", "1"}), testing::StartsWith("sluice 1: pid 7, a?[31m?b\n"));
}

TEST(TextWriter, says_when_counts_are_missing_and_shows_none) {
  Snapshot s = distinct_snapshot();
  EXPECT_THAT(text_of(s), Not(HasSubstr("SLUICE_STATS=1")));
  EXPECT_THAT(text_of(s), HasSubstr("  allocated  "));
  s.counting = false;
  EXPECT_THAT(text_of(s), HasSubstr("that needs SLUICE_STATS=1 from the start,\nand no SLUICE_STATS_COUNT=0\n"));
  EXPECT_THAT(text_of(s), Not(HasSubstr("  allocated  ")));
  EXPECT_THAT(text_of(s), Not(HasSubstr("peak ")));
}

TEST(TextWriter, shows_a_class_with_its_use_and_its_rounding) {
  Snapshot s = empty_snapshot();
  s.counting = true;
  s.classes[2] = {32, 2000, 976, 48000, 1024, 1500, 1, 1, 65536, 2048};
  EXPECT_THAT(text_of(s), HasSubstr("\n     32         2,000           976       1,024       1,500      1"
                                    " 64.0 KiB  50.0 % 15.6 KiB  25.0 %\n"));
}

TEST(TextWriter, says_where_the_resident_memory_is) {
  constexpr uint64_t mib = 1 << 20;
  Snapshot s = empty_snapshot();
  EXPECT_THAT(text_of(s), Not(HasSubstr("resident memory")));
  s.live_bytes = 8 * mib;
  s.large.live_bytes = 3 * mib;
  s.arena.live_bytes = mib;
  s.cached_bytes = mib;
  s.resident = {10 * mib, 4 * mib, 2 * mib, 3 * mib, mib};
  EXPECT_THAT(text_of(s),
              HasSubstr("\nresident memory: 2.50 times what is live\n"
                        "  slabs         10.0 MiB  50.0 %  4.00 MiB live, 1.00 MiB in caches, 5.00 MiB between\n"
                        "  large blocks  4.00 MiB  20.0 %  3.00 MiB live\n"
                        "  arenas        2.00 MiB  10.0 %  1.00 MiB live\n"
                        "  free pages    3.00 MiB  15.0 %  not yet given back\n"
                        "  heap's own    1.00 MiB   5.0 %  thread caches\n"));
  s = empty_snapshot();
  s.resident.free_bytes = mib;
  EXPECT_THAT(text_of(s), HasSubstr("\nresident memory\n"
                                    "  slabs              0 B   0.0 %  0 B live, 0 B in caches, 0 B between\n"
                                    "  free pages    1.00 MiB 100.0 %  not yet given back\n"));
}

// Blocks that were never written may be live and not in memory.
TEST(TextWriter, is_not_misled_by_live_blocks_that_are_not_in_memory) {
  Snapshot s = empty_snapshot();
  s.live_bytes = 1000;
  s.resident.slab_bytes = 500;
  EXPECT_THAT(text_of(s), HasSubstr("0.50 times what is live\n"));
  EXPECT_THAT(text_of(s), HasSubstr(" 0 B between\n"));
}

TEST(TextWriter, shows_what_holds_most_of_what_is_live) {
  Snapshot s = empty_snapshot();
  EXPECT_THAT(text_of(s), Not(HasSubstr("most of what is live")));
  s.live_bytes = 102'400;
  s.large = {};
  s.large.live_bytes = 30'720;
  s.large.live_spans = 2;
  s.classes[1].block_size = 16;
  s.classes[1].live_blocks = 63;  // less than a hundredth
  s.classes[2].block_size = 32;
  s.classes[2].live_blocks = 64;
  s.classes[20].block_size = 1024;
  s.classes[20].live_blocks = 68;
  EXPECT_THAT(text_of(s), HasSubstr("\nmost of what is live\n"
                                    "  1,024 bytes   68.0 KiB  68.0 %  68 blocks\n"
                                    "  large         30.0 KiB  30.0 %  2 blocks\n"
                                    "     32 bytes   2.00 KiB   2.0 %  64 blocks\n"
                                    "\n"));
}

TEST(TextWriter, shows_ten_of_what_is_live_at_most) {
  Snapshot s = empty_snapshot();
  s.live_bytes = 1000 * 20;
  for (unsigned k = 1; k <= 20; ++k) {
    s.classes[k].block_size = 1000 + k;
    s.classes[k].live_blocks = 1;
  }
  const std::string text = text_of(s);
  EXPECT_THAT(text, HasSubstr("\nmost of what is live\n  1,020 bytes"));
  EXPECT_THAT(text, HasSubstr("  1,011 bytes"));
  EXPECT_THAT(text, Not(HasSubstr("  1,010 bytes")));
}

TEST(TextWriter, mentions_the_arena_only_when_it_was_used) {
  Snapshot s = empty_snapshot();
  EXPECT_THAT(text_of(s), Not(HasSubstr("arena")));
  s.arena.scopes = 1;
  EXPECT_THAT(text_of(s), HasSubstr("arena       1 scopes"));
}

TEST(TextWriter, stays_within_a_hundred_columns) {
  Snapshot s = distinct_snapshot();
  for (unsigned c = 1; c < size_class_count; ++c)
    s.classes[c] = {
        class_sizes[c], 9999999999, 9999999999, 9, 99999999, 99999999, 1, 9999, uint64_t{99999999} * class_sizes[c], 9};
  EXPECT_LE(longest_line(text_of(s)), 100u);
  s.counting = false;
  EXPECT_LE(longest_line(text_of(s)), 100u);
}

TEST(TextWriter, copes_with_figures_that_contradict_each_other) {
  Snapshot s = distinct_snapshot();
  s.requested_bytes = UINT64_MAX;
  s.classes[1].requested_bytes = UINT64_MAX;
  s.large.requested_bytes = UINT64_MAX;
  EXPECT_THAT(text_of(s), HasSubstr("rounded up to blocks by 0.0 %\n"));
}

TEST(XmlWriter, counts_free_blocks_by_size_and_in_total) {
  Snapshot s = empty_snapshot();
  s.classes[2] = {32, 0, 0, 0, 5, 0, 3, 1, 65536, 10};
  s.large.live_spans = 4;
  s.large.live_bytes = 400000;
  s.mapped_bytes = 700000;
  const std::string xml = xml_of(s);
  EXPECT_THAT(xml, testing::StartsWith("<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n"));
  EXPECT_THAT(xml, HasSubstr("  <size from=\"17\" to=\"32\" total=\"160\" count=\"5\"/>\n"));
  EXPECT_THAT(xml, HasSubstr("<total type=\"fast\" count=\"3\" size=\"96\"/>\n"));
  EXPECT_THAT(xml, HasSubstr("<total type=\"rest\" count=\"2\" size=\"64\"/>\n"));
  EXPECT_THAT(xml, HasSubstr("<total type=\"mmap\" count=\"4\" size=\"400000\"/>\n"));
  EXPECT_THAT(xml, HasSubstr("<system type=\"current\" size=\"700000\"/>\n"));
  EXPECT_THAT(xml, testing::EndsWith("</malloc>\n"));
}

TEST(XmlWriter, closes_every_element) {
  const std::string xml = xml_of(distinct_snapshot());
  for (const char* element : {"malloc", "heap", "sizes"}) {
    const std::regex opened(std::string("<") + element + "[ >]"), closed(std::string("</") + element + ">");
    const auto count = [&](const std::regex& r) {
      return std::distance(std::sregex_iterator(xml.begin(), xml.end(), r), std::sregex_iterator());
    };
    EXPECT_EQ(count(opened), 1);
    EXPECT_EQ(count(closed), 1);
  }
}

}  // namespace
