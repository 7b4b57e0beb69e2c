// Suppressions of leaks: which names a pattern matches, and which files are none.
#include <string>

#include <gtest/gtest.h>

#include "command.hpp"
#include "leaks/suppressions.hpp"

namespace {

using sluice::cli::CommandError;
using sluice::cli::leaks::matches;
using sluice::cli::leaks::Suppressions;

TEST(Suppressions, PatternsMatchAsThoseOfLeakSanitizerDo) {
  struct Case {
    const char* pattern;
    const char* name;
    bool expected;
  };
  for (const Case& each : {Case{"foo", "foo", true},
                           {"foo", "a_foo_b", true},
                           {"foo", "fo", false},
                           {"foo", "", false},
                           {"", "foo", true},
                           {"*", "foo", true},
                           {"^foo", "foobar", true},
                           {"^foo", "a foo", false},
                           {"^", "foo", true},
                           {"foo$", "a foo", true},
                           {"foo$", "foobar", false},
                           {"foo$", "foo foo", true},
                           {"^foo$", "foo", true},
                           {"^foo$", "foo foo", false},
                           {"^foo*$", "foobar", true},
                           {"f*r", "foobar", true},
                           {"f*r", "rf", false},
                           {"f*o*r", "foor", true},
                           {"f*oo*o", "foo", false},
                           {"^*bar$", "foobar", true},
                           {"/usr/lib/*/libx.so", "/usr/lib/a/b/libx.so.1", true},
                           {"libx.so$", "/usr/lib/libx.so.1", false},
                           {"*a*b*$", "xxaxxbxx", true}})
    EXPECT_EQ(matches(each.pattern, each.name), each.expected) << each.pattern << " and " << each.name;
}

TEST(Suppressions, LinesAreCommentsOrPatterns) {
  const Suppressions all = Suppressions::parse("file", "# no\n\n  leak:one \r\n\tleak:two words\n#leak:three");
  EXPECT_TRUE(all.cover("the one"));
  EXPECT_TRUE(all.cover("two words"));
  EXPECT_FALSE(all.cover("two"));
  EXPECT_FALSE(all.cover("three"));
  EXPECT_TRUE(Suppressions::parse("file", "").empty());
  for (const char* const wrong : {"one", "leak:", "leak: ", "race:one", "leak", "leak:one\nlsan:two"})
    EXPECT_THROW(Suppressions::parse("file", wrong), CommandError) << wrong;
}

}  // namespace
