// Options: every type of the table, good values and bad, and what SLUICE_STATS can say.
#include "base/options.hpp"

#include <csignal>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "os/memory.hpp"

namespace {

using namespace sluice;

using Environment = std::map<std::string, std::string>;

// Takes every SLUICE_* variable away, so that the environment of the test run does not matter.
void clear_environment() {
  std::vector<std::string> names;
  for (char** variable = os::environment(); *variable != nullptr; ++variable) {
    const std::string_view entry = *variable;
    if (entry.starts_with("SLUICE_")) names.emplace_back(entry.substr(0, entry.find('=')));
  }
  for (const std::string& name : names)
    unsetenv(name.c_str());
}

// Reads the options out of an environment with these variables. Returns: what was printed on stderr.
std::string complaints(const Environment& variables) {
  clear_environment();
  for (const auto& [name, value] : variables)
    setenv(name.c_str(), value.c_str(), 1);
  options = Options{};
  testing::internal::CaptureStderr();
  EXPECT_TRUE(read_options());
  return testing::internal::GetCapturedStderr();
}

void expect_one_line_about(const std::string& text, const std::string& variable) {
  EXPECT_EQ(text.find("sluice: " + variable), 0u) << text;
  EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
}

TEST(Options, defaults_hold_when_nothing_is_set) {
  EXPECT_EQ(complaints({}), "");
  const Options defaults;
  EXPECT_EQ(options.reserve, defaults.reserve);
  EXPECT_EQ(options.cache, defaults.cache);
  EXPECT_EQ(options.purge_delay, defaults.purge_delay);
  EXPECT_STREQ(options.stats, "");
}

TEST(Options, a_delay_may_be_never) {
  EXPECT_EQ(complaints({{"SLUICE_PURGE_DELAY", "never"}}), "");
  EXPECT_EQ(options.purge_delay, delay_never);
  EXPECT_EQ(complaints({{"SLUICE_PURGE_DELAY", "3600000"}}), "");
  EXPECT_EQ(options.purge_delay, 3'600'000u);
  for (const char* const bad : {"nevermore", "", "3600001", "1099511627776", "1099511627777"}) {
    expect_one_line_about(complaints({{"SLUICE_PURGE_DELAY", bad}}), "SLUICE_PURGE_DELAY");
    EXPECT_EQ(options.purge_delay, Options{}.purge_delay) << bad;
  }
  expect_one_line_about(complaints({{"SLUICE_GUARD_SLOTS", "never"}}), "SLUICE_GUARD_SLOTS");
}

TEST(Options, sizes_take_suffixes_of_powers_of_1024) {
  const std::map<std::string, uint64_t> sizes = {{"0", 0},
                                                 {"4096", 4096},
                                                 {"1k", 1024},
                                                 {"1K", 1024},
                                                 {"2KB", 2048},
                                                 {"3kiB", 3 * 1024},
                                                 {"5M", 5u << 20},
                                                 {"5MiB", 5u << 20},
                                                 {"1G", 1ull << 30},
                                                 {"1gb", 1ull << 30},
                                                 {"1T", 1ull << 40},
                                                 {"0001K", 1024},
                                                 {"1023G", 1023ull << 30}};
  for (const auto& [text, bytes] : sizes) {
    EXPECT_EQ(complaints({{"SLUICE_RETAIN", text}}), "") << text;
    EXPECT_EQ(options.retain, bytes) << text;
  }
}

TEST(Options, bad_sizes_get_one_line_and_the_default) {
  for (const char* text : {"", "K", "1X", "1KK", "1 K", "-1", "+1", "1.5G", "0x10", "18446744073709551616",
                           "99999999999999999T", "1KiBs", "lots"}) {
    expect_one_line_about(complaints({{"SLUICE_RETAIN", text}}), std::string("SLUICE_RETAIN=") + text + ": ");
    EXPECT_EQ(options.retain, Options{}.retain) << text;
  }
}

TEST(Options, values_out_of_range_get_one_line_and_the_default) {
  expect_one_line_about(complaints({{"SLUICE_RESERVE", "1M"}}), "SLUICE_RESERVE=1M: ");
  EXPECT_EQ(options.reserve, Options{}.reserve);
  expect_one_line_about(complaints({{"SLUICE_RESERVE", "17T"}}), "SLUICE_RESERVE=17T: ");
  EXPECT_EQ(options.reserve, Options{}.reserve);
  expect_one_line_about(complaints({{"SLUICE_CACHE", "2M"}}), "SLUICE_CACHE=2M: ");
  EXPECT_EQ(options.cache, Options{}.cache);
}

TEST(Options, both_bounds_of_a_range_are_good_values) {
  EXPECT_EQ(complaints({{"SLUICE_RESERVE", "64M"}, {"SLUICE_CACHE", "1M"}}), "");
  EXPECT_EQ(options.reserve, 64u << 20);
  EXPECT_EQ(options.cache, 1u << 20);
  EXPECT_EQ(complaints({{"SLUICE_RESERVE", "16T"}, {"SLUICE_CACHE", "0"}}), "");
  EXPECT_EQ(options.reserve, 16ull << 40);
  EXPECT_EQ(options.cache, 0u);
}

TEST(Options, counts_are_plain_numbers) {
  EXPECT_EQ(complaints({{"SLUICE_PURGE_DELAY", "25"}}), "");
  EXPECT_EQ(options.purge_delay, 25u);
  for (const char* text : {"", "1K", "-1", "ten", "3600001"}) {
    expect_one_line_about(complaints({{"SLUICE_PURGE_DELAY", text}}), std::string("SLUICE_PURGE_DELAY=") + text);
    EXPECT_EQ(options.purge_delay, Options{}.purge_delay) << text;
  }
}

TEST(Options, booleans_are_words_or_digits_in_any_case) {
  for (const char* text : {"1", "on", "ON", "yes", "True"}) {
    EXPECT_EQ(complaints({{"SLUICE_HUGE_PAGES", text}}), "") << text;
    EXPECT_TRUE(options.huge_pages) << text;
  }
  for (const char* text : {"0", "off", "No", "FALSE"}) {
    EXPECT_EQ(complaints({{"SLUICE_HUGE_PAGES", text}}), "") << text;
    EXPECT_FALSE(options.huge_pages) << text;
  }
  for (const char* text : {"", "2", "maybe", "onn", "1 "}) {
    expect_one_line_about(complaints({{"SLUICE_HUGE_PAGES", text}}), "SLUICE_HUGE_PAGES=");
    EXPECT_FALSE(options.huge_pages) << text;
  }
}

TEST(Options, signals_go_by_name_or_number) {
  const std::map<std::string, int> signals = {
      {"USR2", SIGUSR2}, {"SIGUSR2", SIGUSR2}, {"sigusr1", SIGUSR1}, {"12", 12}, {"0", 0}, {"hup", SIGHUP}, {"64", 64}};
  for (const auto& [text, number] : signals) {
    EXPECT_EQ(complaints({{"SLUICE_STATS_SIGNAL", text}}), "") << text;
    EXPECT_EQ(options.stats_signal, number) << text;
  }
  for (const char* text : {"", "KILL", "9", "19", "65", "SIG", "USR3", "12x", "-1"}) {
    expect_one_line_about(complaints({{"SLUICE_STATS_SIGNAL", text}}), "SLUICE_STATS_SIGNAL=");
    EXPECT_EQ(options.stats_signal, 0) << text;
  }
}

TEST(Options, unknown_names_get_one_line_and_do_no_harm) {
  const std::string text = complaints({{"SLUICE_NO_SUCH", "1"}, {"SLUICE_RETAIN", "1M"}});
  expect_one_line_about(text, "SLUICE_NO_SUCH=1: ");
  EXPECT_EQ(options.retain, 1u << 20);
}

TEST(Options, names_of_others_are_left_alone) {
  EXPECT_EQ(complaints({{"SLUICE", "1"}, {"SLUICEBOX_RETAIN", "1"}, {"MY_SLUICE_RETAIN", "1"}}), "");
  unsetenv("SLUICE");
  unsetenv("SLUICEBOX_RETAIN");
  unsetenv("MY_SLUICE_RETAIN");
}

TEST(Options, each_bad_variable_gets_a_line_of_its_own) {
  const std::string text = complaints({{"SLUICE_RETAIN", "x"}, {"SLUICE_HUGE_PAGES", "x"}, {"SLUICE_FOO", "x"}});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
}

TEST(Options, a_value_longer_than_any_buffer_is_reported_whole) {
  const std::string value(5000, 'x');
  const std::string text = complaints({{"SLUICE_RETAIN", value}});
  EXPECT_NE(text.find(value), std::string::npos);
  expect_one_line_about(text, "SLUICE_RETAIN=");
}

TEST(Options, a_list_sets_several) {
  EXPECT_EQ(
      complaints({{"SLUICE_OPTIONS", "RETAIN=5M,HUGE_PAGES=on,PURGE_DELAY=never,STATS=json:/a b=c,STATS_SIGNAL=USR2"}}),
      "");
  EXPECT_EQ(options.retain, 5u << 20);
  EXPECT_TRUE(options.huge_pages);
  EXPECT_EQ(options.purge_delay, delay_never);
  EXPECT_STREQ(options.stats, "json:/a b=c");
  EXPECT_EQ(options.stats_signal, SIGUSR2);
}

TEST(Options, texts_of_a_list_outlive_the_variable) {
  EXPECT_EQ(complaints({{"SLUICE_OPTIONS", "STATS_PROGRAM=one,PROFILE=two"}}), "");
  setenv("SLUICE_OPTIONS", "STATS_PROGRAM=xxx,PROFILE=xxx", 1);
  unsetenv("SLUICE_OPTIONS");
  EXPECT_STREQ(options.stats_program, "one");
  EXPECT_STREQ(options.profile, "two");
}

TEST(Options, the_variable_of_an_option_stands_whatever_a_list_says) {
  // Whichever of the two comes first in the environment.
  for (const bool list_first : {true, false}) {
    clear_environment();
    if (list_first) setenv("SLUICE_OPTIONS", "RETAIN=1M,CACHE=1K,PROFILE=a", 1);
    setenv("SLUICE_RETAIN", "2M", 1);
    setenv("SLUICE_PROFILE", "", 1);
    if (!list_first) setenv("SLUICE_OPTIONS", "RETAIN=1M,CACHE=1K,PROFILE=a", 1);
    options = Options{};
    ASSERT_TRUE(read_options());
    EXPECT_EQ(options.retain, 2u << 20);
    EXPECT_EQ(options.cache, 1u << 10);
    EXPECT_STREQ(options.profile, "");
  }
  expect_one_line_about(complaints({{"SLUICE_OPTIONS", "RETAIN=1M"}, {"SLUICE_RETAIN", "x"}}), "SLUICE_RETAIN=x: ");
  EXPECT_EQ(options.retain, Options{}.retain);
}

TEST(Options, the_last_of_a_list_stands) {
  EXPECT_EQ(complaints({{"SLUICE_OPTIONS", "RETAIN=1M,CACHE=1K,RETAIN=3M"}}), "");
  EXPECT_EQ(options.retain, 3u << 20);
  expect_one_line_about(complaints({{"SLUICE_OPTIONS", "RETAIN=1M,RETAIN=x"}}), "SLUICE_OPTIONS: RETAIN=x: ");
  EXPECT_EQ(options.retain, Options{}.retain);
}

TEST(Options, empty_places_of_a_list_are_nothing) {
  for (const char* const list : {"", ",", ",,RETAIN=1M,,", "RETAIN=1M,"}) {
    EXPECT_EQ(complaints({{"SLUICE_OPTIONS", list}}), "") << list;
    EXPECT_EQ(options.retain, std::string_view(list).size() > 2 ? 1u << 20 : Options{}.retain) << list;
  }
}

TEST(Options, each_bad_entry_of_a_list_gets_a_line_and_does_no_harm) {
  for (const char* const bad : {"RETAIN=x", "RETAIN=99999T", "RETAIN", "=1M", "retain=1M", "SLUICE_RETAIN=1M",
                                " RETAIN=1M", "OPTIONS=1", "NO_SUCH=1"}) {
    expect_one_line_about(complaints({{"SLUICE_OPTIONS", std::string("CACHE=1K,") + bad + ",HUGE_PAGES=1"}}),
                          std::string("SLUICE_OPTIONS: ") + bad + ": ");
    EXPECT_EQ(options.retain, Options{}.retain) << bad;
    EXPECT_EQ(options.cache, 1u << 10) << bad;
    EXPECT_TRUE(options.huge_pages) << bad;
  }
  const std::string text = complaints({{"SLUICE_OPTIONS", "a,b=1,RETAIN=x"}});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
}

TEST(Options, a_list_may_be_longer_than_any_page) {
  std::string list;
  for (int i = 0; i < 20000; ++i)
    list += "RETAIN=1M,";
  EXPECT_EQ(complaints({{"SLUICE_OPTIONS", list + "CACHE=1K"}}), "");
  EXPECT_EQ(options.cache, 1u << 10);
  expect_one_line_about(complaints({{"SLUICE_OPTIONSX", "RETAIN=1M"}}), "SLUICE_OPTIONSX=RETAIN=1M: ");
  EXPECT_EQ(options.retain, Options{}.retain);
}

struct Wish {
  const char* text;
  bool understood, wanted;
  StatsFormat format;
  const char* file;
};

TEST(Options, stats_says_whether_how_and_where) {
  const Wish wishes[] = {{"", true, false, StatsFormat::Text, nullptr},
                         {"0", true, false, StatsFormat::Text, nullptr},
                         {"off", true, false, StatsFormat::Text, nullptr},
                         {"1", true, true, StatsFormat::Text, nullptr},
                         {"on", true, true, StatsFormat::Text, nullptr},
                         {"text", true, true, StatsFormat::Text, nullptr},
                         {"json", true, true, StatsFormat::Json, nullptr},
                         {"text:out.txt", true, true, StatsFormat::Text, "out.txt"},
                         {"json:/tmp/a %p.json", true, true, StatsFormat::Json, "/tmp/a %p.json"},
                         {"json:text:x", true, true, StatsFormat::Json, "text:x"},
                         {"prometheus", true, true, StatsFormat::Prometheus, nullptr},
                         {"prometheus:/x/%p.prom", true, true, StatsFormat::Prometheus, "/x/%p.prom"},
                         {"prometheus:", false, false, StatsFormat::Text, nullptr},
                         {"prom:x", false, false, StatsFormat::Text, nullptr},
                         {"text:", false, false, StatsFormat::Text, nullptr},
                         {"json:", false, false, StatsFormat::Text, nullptr},
                         {"xml", false, false, StatsFormat::Text, nullptr},
                         {"jsonfile", false, false, StatsFormat::Text, nullptr}};
  for (const Wish& expected : wishes) {
    EXPECT_EQ(complaints({{"SLUICE_STATS", expected.text}}), "") << expected.text;
    const StatsWish wish = stats_wish();
    EXPECT_EQ(wish.understood, expected.understood) << expected.text;
    EXPECT_EQ(wish.wanted, expected.wanted) << expected.text;
    EXPECT_EQ(wish.format, expected.format) << expected.text;
    EXPECT_STREQ(wish.file, expected.file) << expected.text;
    EXPECT_EQ(options_want_statistics(), expected.wanted) << expected.text;
  }
}

TEST(Options, statistics_are_counted_unless_told_otherwise) {
  EXPECT_EQ(complaints({{"SLUICE_STATS_SIGNAL", "USR2"}}), "");
  EXPECT_TRUE(options_want_statistics());
  EXPECT_TRUE(options_want_counts());
  EXPECT_EQ(complaints({{"SLUICE_STATS", "1"}}), "");
  EXPECT_TRUE(options_want_counts());
  EXPECT_EQ(complaints({{"SLUICE_STATS", "1"}, {"SLUICE_STATS_COUNT", "0"}}), "");
  EXPECT_TRUE(options_want_statistics());
  EXPECT_FALSE(options_want_counts());
  EXPECT_EQ(complaints({{"SLUICE_STATS_COUNT", "1"}}), "");
  EXPECT_FALSE(options_want_counts());
}

}  // namespace
