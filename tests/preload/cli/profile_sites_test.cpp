// Who allocates: names of functions, the function that counts as the site, sums by site, and what sampling may miss.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "profile/exports.hpp"
#include "profile/names.hpp"
#include "profile/sites.hpp"
#include "profile/text.hpp"

namespace {

using namespace sluice::cli::profile;

TEST(ProfileNames, SymbolsAreDemangled) {
  EXPECT_EQ(demangled("main"), "main");
  EXPECT_EQ(demangled("_Znwm"), "operator new(unsigned long)");
  EXPECT_EQ(demangled("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)");
  EXPECT_EQ(demangled("_ZN3FooC2Ev.cold"), "Foo::Foo()");
  EXPECT_EQ(demangled("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
  EXPECT_EQ(demangled("_ZN63_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..clone..Clone$GT$5clone17h0123456789abcdefE"),
            "<alloc::vec::Vec<T> as core::clone::Clone>::clone");
#if defined(SLUICE_LIBIBERTY)
  EXPECT_EQ(demangled("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
  EXPECT_EQ(demangled("_RNvCs1234_7mycrate3foo.llvm.123"), "mycrate::foo");
  EXPECT_EQ(demangled("_RNvMCs5OrUdxFoKcp_1rINtB2_5TableAyj10_E3add"), "<r::Table<[u64; 16]>>::add");
#else
  EXPECT_EQ(demangled("_RNvCs1234_7mycrate3foo"), "_RNvCs1234_7mycrate3foo");
#endif
  EXPECT_EQ(demangled("_Rbroken"), "_Rbroken");
  EXPECT_EQ(demangled("_R" + std::string(5000, 'N')), "_R" + std::string(5000, 'N'));
  EXPECT_EQ(demangled("_Zbroken"), "_Zbroken");
  EXPECT_EQ(demangled("_Z" + std::string(5000, '1')), "_Z" + std::string(5000, '1'));
}

TEST(ProfileNames, ShortNamesHaveNoParameters) {
  EXPECT_EQ(short_name("main"), "main");
  EXPECT_EQ(short_name("f(int)"), "f");
  EXPECT_EQ(short_name("void ns::f<int>(char) const"), "ns::f<>");
  EXPECT_EQ(short_name("std::map<int, A<B> >::operator[](int const&)"), "std::map<>::operator[]");
  EXPECT_EQ(short_name("Foo::operator()(int) const"), "Foo::operator()");
  EXPECT_EQ(short_name("std::ostream& operator<< <char>(std::ostream&, char)"), "operator<<<>");
  EXPECT_EQ(short_name("operator new(unsigned long)"), "operator new");
  EXPECT_EQ(short_name("operator new[](unsigned long)"), "operator new[]");
  EXPECT_EQ(short_name("(anonymous namespace)::g(int)"), "(anonymous namespace)::g");
  EXPECT_EQ(short_name("ns::(anonymous namespace)::g<int>(int)"), "ns::(anonymous namespace)::g<>");
  EXPECT_EQ(short_name("f(int)::{lambda(int)#1}::operator()(int) const"), "f::{lambda(int)#1}::operator()");
  EXPECT_EQ(short_name("<alloc::vec::Vec<T> as core::clone::Clone>::clone"),
            "<alloc::vec::Vec<T> as core::clone::Clone>::clone");
  EXPECT_EQ(short_name("libc.so.6+0x1234"), "libc.so.6+0x1234");
  EXPECT_EQ(short_name("operators(int)"), "operators");
  for (const char* const odd :
       {"", "(", ")", "<", ">", "operator", "operator ", "operator<", "a(b", "a<b", "((((", "::", " "})
    EXPECT_LE(short_name(odd).size(), std::string(odd).size() + 2) << odd;
}

TEST(ProfileNames, WhatHandsMemoryOnIsKnown) {
  for (const char* const name : {"malloc",
                                 "__libc_malloc",
                                 "xmalloc",
                                 "g_malloc",
                                 "g_malloc0",
                                 "g_malloc_n",
                                 "PyMem_Malloc",
                                 "_PyObject_Malloc",
                                 "zmalloc_usable",
                                 "operator new",
                                 "operator new[]",
                                 "strdup",
                                 "xstrndup",
                                 "std::vector<>::push_back",
                                 "__gnu_cxx::new_allocator<>::allocate",
                                 "alloc::raw_vec::finish_grow",
                                 "hashbrown::raw::RawTable<>::reserve_rehash",
                                 "<hashbrown::raw::RawTableInner>::new_uninitialized::<>",
                                 "__rust_realloc",
                                 "std::__cxx11::basic_string<>::_M_create"})
    EXPECT_TRUE(hands_memory_on(name)) << name;
  for (const char* const name :
       {"main", "parse", "stdx::f", "allocate_table", "malloc_trim_all", "Foo::operator()", "newer"})
    EXPECT_FALSE(hands_memory_on(name)) << name;
}

// A profile of stacks of names, innermost first, with bytes allocated and alive.
class SiteProfile {
 public:
  SiteProfile() {
    profile.types = {
        {"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"inuse_objects", "count"}, {"inuse_space", "bytes"}};
    profile.period = 1;
  }
  void add(const std::vector<std::string>& names, int64_t count, int64_t size, int64_t alive) {
    Sample sample;
    for (const std::string& each : names) {
      profile.functions.push_back({each, each, each + ".c"});
      profile.locations.push_back({0, none, {{profile.functions.size() - 1, 5}}});
      sample.locations.push_back(static_cast<uint32_t>(profile.locations.size() - 1));
    }
    sample.values = {count, count * size, alive, alive * size};
    sample.labels = {{"bytes", "", "bytes", size}};
    profile.samples.push_back(sample);
  }
  Profile profile;
};

TEST(ProfileSites, TheSiteIsTheInnermostFunctionThatDoesNotOnlyHandMemoryOn) {
  SiteProfile made;
  made.add({"operator new(unsigned long)", "std::vector<int>::push_back(int)", "parse(char)", "main"}, 4, 100, 1);
  made.add({"malloc", "xmalloc", "parse(char)", "main"}, 2, 100, 2);
  made.add({"malloc", "load", "main"}, 1, 250, 1);
  made.add({"malloc", "std::function<void ()>::operator()()"}, 1, 1, 1);
  const Stacks stacks = stacks_of(made.profile);
  const std::vector<Site> sites = sites_of(stacks, Measure::inuse);
  ASSERT_EQ(sites.size(), 3U);
  EXPECT_EQ(stacks.function_of(sites[0].frame).name, "parse");
  EXPECT_EQ(sites[0].values[inuse_bytes], 300);
  EXPECT_EQ(sites[0].values[alloc_bytes], 600);
  EXPECT_EQ(sites[0].values[inuse_blocks], 3);
  ASSERT_EQ(sites[0].via.size(), 2U);  // of the stack that allocated most
  EXPECT_EQ(stacks.function_of(sites[0].via[0]).name, "std::vector<>::push_back");
  EXPECT_EQ(stacks.function_of(sites[0].via[1]).name, "operator new");
  ASSERT_EQ(sites[0].callers.size(), 1U);
  EXPECT_EQ(stacks.function_of(sites[1].frame).name, "load");
  EXPECT_EQ(stacks.function_of(sites[2].frame).name, "malloc");  // all of its stack hand memory on
  EXPECT_EQ(stacks.total[alloc_bytes], 851);
  EXPECT_EQ(sites_of(stacks, Measure::alloc)[1].values[alloc_bytes], 250);
}

TEST(ProfileSites, ASampleWithoutAStackIsNotLost) {
  SiteProfile made;
  made.add({}, 1, 64, 1);
  const Stacks stacks = stacks_of(made.profile);
  ASSERT_EQ(sites_of(stacks, Measure::inuse).size(), 1U);
  EXPECT_EQ(stacks.function_of(sites_of(stacks, Measure::inuse)[0].frame).name, "unknown");
}

// Of n blocks of s bytes, each sampled with p = 1 - exp(-s / rate), the estimate deviates by s sqrt(n (1 - p) / p).
TEST(ProfileSites, TheErrorFollowsFromTheRate) {
  SiteProfile made;
  made.add({"f"}, 1000, 1024, 1000);
  EXPECT_EQ(stacks_of(made.profile).total.error(Measure::inuse), 0);  // each block is a sample
  made.profile.period = 1039;                                         // blocks count 15 bytes more
  const double p = 1 - std::exp(-1.0);
  EXPECT_NEAR(stacks_of(made.profile).total.error(Measure::inuse), 1.96 * std::sqrt((1 - p) / p / 1000), 1e-9);
  made.profile.period = 512 * 1039;
  EXPECT_NEAR(stacks_of(made.profile).total.error(Measure::alloc), 1.96 * std::sqrt(512 / 1000.0), 0.001);
  made.add({"huge"}, 1, int64_t{1} << 40, 1);  // is never missed
  EXPECT_LT(stacks_of(made.profile).total.error(Measure::inuse), 1e-3);
}

TEST(ProfileSites, NumbersThatNoIntegerHoldsAddUp) {
  SiteProfile made;
  for (int i = 0; i < 4; ++i)
    made.add({"f"}, 1, INT64_MAX, 1);
  const Stacks stacks = stacks_of(made.profile);
  EXPECT_GT(stacks.total[inuse_bytes], 3e19);
  EXPECT_FALSE(report_text(made.profile, stacks, {}).empty());
}

TEST(ProfileText, FunctionsCannotWriteToTheTerminal) {
  SiteProfile made;
  made.add({"evil\x1b[2J\n;name", "main"}, 1, 64, 1);
  const Stacks stacks = stacks_of(made.profile);
  const std::string text = report_text(made.profile, stacks, {});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("evil?[2J?;name"), std::string::npos);
  EXPECT_EQ(collapsed_text(stacks, Measure::inuse), "main;evil?[2J?:name 64\n");
}

TEST(ProfileText, LinesAreNotWiderThanTheTerminal) {
  SiteProfile made;
  made.add({"malloc", "a_function_with_a_name_that_is_longer_than_what_is_left_of_the_line_of_a_terminal", "main"},
           5000, 64, 1000);
  const Stacks stacks = stacks_of(made.profile);
  for (const size_t width : {40U, 60U, 80U, 132U}) {
    const std::string text = report_text(made.profile, stacks, {.look = {.width = width}});
    for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
      size_t letters = 0;
      for (size_t i = begin; i < end; ++i)
        letters += (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80 ? 1 : 0;
      EXPECT_LE(letters, std::max<size_t>(width, 60)) << text.substr(begin, end - begin);
    }
  }
  EXPECT_NE(report_text(made.profile, stacks, {.look = {.width = 60}}).find("left out, for --wide"), std::string::npos);
}

TEST(ProfileText, ADifferenceSaysWhatMayBeChance) {
  SiteProfile before, after;
  before.add({"f"}, 1, 1000, 1);
  before.add({"same"}, 1, 10, 1);
  after.add({"f"}, 3, 1000, 3);
  after.add({"same"}, 1, 10, 1);
  after.add({"new_one"}, 1, 500, 1);
  const auto text_of = [&] {
    const Stacks a = stacks_of(before.profile), b = stacks_of(after.profile);
    return difference_text({"old", &before.profile, &a}, {"new", &after.profile, &b}, {});
  };
  std::string text = text_of();
  EXPECT_NE(text.find("+2.44 KiB"), std::string::npos) << text;
  EXPECT_NE(text.find("top 2 of 2 sites"), std::string::npos) << text;
  EXPECT_LT(text.find("f  f.c"), text.find("new_one  new_one.c")) << text;
  EXPECT_NE(text.find("yes  f  f.c"), std::string::npos) << text;
  EXPECT_EQ(text.find("same"), std::string::npos) << text;
  before.profile.period = after.profile.period = 512 << 10;
  text = text_of();
  EXPECT_NE(text.find("no  f  f.c"), std::string::npos) << text;
}

}  // namespace
