// Profiles as bytes: what is written is read again, and no damaged file is taken for a profile or ends the reader.
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "command.hpp"
#include "profile/file.hpp"
#include "profile/proto.hpp"
#include "profile/sites.hpp"
#include "profile/wire.hpp"

namespace {

using namespace sluice::cli::profile;
using sluice::cli::CommandError;

Profile sample_profile() {
  Profile profile;
  profile.types = {{"alloc_space", "bytes"}, {"inuse_space", "bytes"}, {"inuse_objects", "count"}};
  profile.mappings = {{0x1000, 0x9000, 0x200, "/usr/bin/program", "00ff12", true}};
  profile.functions = {{"f(int)", "_Z1fi", "/src/f.cpp"}, {"main", "main", ""}};
  profile.locations = {{0x1234, 0, {{0, 12}, {1, 0}}}, {~uint64_t{0}, none, {}}};
  profile.samples = {{{0, 1, 0}, {0, INT64_MAX, 1}, {{"bytes", "", "bytes", 96}, {"thread", "main", "", 0}}},
                     {{}, {1, 2, 3}, {}}};
  profile.comments = {"sluice.pid=12", "sluice.samples=34", "sluice.program=a=b"};
  profile.default_type = "inuse_space";
  profile.period_type = {"space", "bytes"};
  profile.period = 524288;
  profile.time_nanos = 5;
  profile.duration_nanos = 7;
  return profile;
}

TEST(ProfileFormat, WhatIsWrittenIsReadAgain) {
  const Profile profile = sample_profile();
  const std::string bytes = encoded(profile);
  const Profile again = decoded(bytes);
  EXPECT_EQ(encoded(again), bytes);
  ASSERT_EQ(again.samples.size(), 2U);
  EXPECT_EQ(again.samples[0].locations, (std::vector<uint32_t>{0, 1, 0}));
  EXPECT_EQ(again.samples[0].values, (std::vector<int64_t>{0, INT64_MAX, 1}));
  EXPECT_EQ(again.samples[0].labels[0].number, 96);
  EXPECT_EQ(again.samples[0].labels[1].text, "main");
  EXPECT_EQ(again.mappings[0].build_id, "00ff12");
  EXPECT_EQ(again.locations[0].lines[0].line, 12);
  EXPECT_EQ(again.functions[again.locations[0].lines[1].function].name, "main");
  EXPECT_EQ(again.locations[1].address, ~uint64_t{0});
  EXPECT_EQ(again.locations[1].mapping, none);
  EXPECT_EQ(again.fact("program"), "a=b");
  EXPECT_EQ(again.number_fact("samples"), 34U);
  EXPECT_EQ(again.number_fact("program"), 0U);
  EXPECT_EQ(again.period, 524288);
}

TEST(ProfileFormat, CompressedFilesAreRead) {
  const std::string bytes = encoded(sample_profile()), compressed = gzipped(bytes);
  EXPECT_EQ(compressed.substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(encoded(parsed_profile("file", compressed)), bytes);
  EXPECT_EQ(encoded(parsed_profile("file", gzipped("") + compressed)), bytes);
}

// The problem that a file is refused with; empty if it is not.
std::string problem_of(std::string_view bytes) {
  try {
    parsed_profile("file", bytes);
    return {};
  } catch (const CommandError& error) {
    EXPECT_EQ(error.code(), sluice::cli::exit_usage);
    return error.what();
  }
}

TEST(ProfileFormat, EveryCutFileIsRefused) {
  const std::string bytes = encoded(sample_profile()), compressed = gzipped(bytes);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(problem_of(bytes.substr(0, size)), "") << size;
  for (size_t size = 0; size < compressed.size(); ++size)
    EXPECT_NE(problem_of(compressed.substr(0, size)), "") << size;
}

TEST(ProfileFormat, NoDamageEndsTheReader) {
  const std::string bytes = encoded(sample_profile());
  std::mt19937 random(4711);
  unsigned refused = 0;
  constexpr unsigned times = 20000;
  for (unsigned i = 0; i < times; ++i) {
    std::string damaged = bytes;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, 1 + random() % 8);
          break;
        case 2:
          damaged.insert(at, 1 + random() % 8, static_cast<char>(0xff));
          break;
        default:
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 64));
      }
      if (damaged.empty()) damaged.push_back(' ');
    }
    try {
      Profile profile = parsed_profile("file", damaged);
      for (Location& each : profile.locations)
        if (each.lines.empty() && !profile.functions.empty()) each.lines.push_back({0, 0});
      sites_of(stacks_of(profile), Measure::inuse);
      EXPECT_FALSE(encoded(profile).empty());
    } catch (const CommandError& error) {
      EXPECT_EQ(error.code(), sluice::cli::exit_usage);
      ++refused;
    }
  }
  EXPECT_GT(refused, times / 10);
  EXPECT_LT(refused, times);
}

std::string with(const std::string& part) {
  return encoded(sample_profile()) + part;
}
std::string field(uint32_t number, const std::string& bytes) {
  return FieldWriter().element(number, bytes).message();
}

TEST(ProfileFormat, WhatIsWrongIsTold) {
  EXPECT_NE(problem_of("").find("is empty"), std::string::npos);
  EXPECT_NE(problem_of("{\"schema\": 1}").find("is no profile but text"), std::string::npos);
  EXPECT_NE(problem_of(std::string(4096, '\0')).find("there can be no field 0"), std::string::npos);
  EXPECT_NE(problem_of("\x1f\x8bno gzip").find("cannot be decompressed"), std::string::npos);
  EXPECT_NE(problem_of(with("\x12")).find("a number is cut off"), std::string::npos);
  EXPECT_NE(problem_of(with("\x12\xff\xff\xff\xff\x0f")).find("ends behind its message"), std::string::npos);
  EXPECT_NE(problem_of(with(std::string("\x48").append(10, '\xff'))).find("more than 64 bits"), std::string::npos);
  EXPECT_NE(problem_of(with("\x4b")).find("unknown kind"), std::string::npos);
  EXPECT_NE(problem_of(with(FieldWriter().number(14, 1U << 31).message())).find("text 2147483648 of"),
            std::string::npos);
  EXPECT_NE(problem_of(with(FieldWriter().number(12, ~uint64_t{0}).message())).find("its period is negative"),
            std::string::npos);
  EXPECT_NE(problem_of(with(field(2, FieldWriter().packed(2, {1, 2}).message()))).find("has 2 values of 3"),
            std::string::npos);
  EXPECT_NE(problem_of(with(field(2, FieldWriter().packed(2, {1, ~uint64_t{0}, 2}).message()))).find("negative value"),
            std::string::npos);
  EXPECT_NE(problem_of(with(field(2, FieldWriter().packed(1, {9}).packed(2, {1, 2, 3}).message())))
                .find("location 9 is not there"),
            std::string::npos);
  EXPECT_NE(problem_of(with(field(4, FieldWriter().number(1, 1).message()))).find("location 1 occurs twice"),
            std::string::npos);
  EXPECT_NE(
      problem_of(with(field(4, FieldWriter().number(1, 7).number(2, 7).message()))).find("mapping 7 is not there"),
      std::string::npos);
  EXPECT_NE(problem_of(with(field(3, ""))).find("a mapping has no id"), std::string::npos);
  EXPECT_NE(
      problem_of(with(field(4, FieldWriter().number(1, 7).element(4, "").message()))).find("a line has no function"),
      std::string::npos);
  Profile other;
  other.types = {{"cpu", "nanoseconds"}};
  EXPECT_NE(problem_of(encoded(other)).find("is no profile of memory"), std::string::npos);
}

TEST(ProfileFormat, FieldsThatAreNotKnownArePassedOver) {
  const std::string fixed =
      "\xf5\x01"
      "abcd"
      "\xa9\x06"
      "12345678";
  const std::string unknown = FieldWriter().number(99, 5).element(100, "x").message() + fixed;
  EXPECT_EQ(problem_of(with(unknown)), "");
}

TEST(ProfileFormat, AFewBytesThatStandForGigabytesAreRefused) {
  std::string bomb;
  const std::string part = gzipped(std::string(size_t{32} << 20, '\0'));
  for (size_t i = 0; i <= largest_profile >> 25; ++i)
    bomb += part;
  EXPECT_NE(problem_of(bomb).find("is larger than 256 MiB"), std::string::npos);
}

TEST(ProfileFormat, ProfilesOfSeveralProcessesAreMerged) {
  Profile all = sample_profile();
  ASSERT_TRUE(merge(all, sample_profile()));
  EXPECT_EQ(all.samples.size(), 4U);
  EXPECT_EQ(all.samples[2].locations, (std::vector<uint32_t>{2, 3, 2}));
  EXPECT_EQ(all.locations[2].mapping, 1U);
  EXPECT_EQ(all.locations[2].lines[0].function, 2U);
  EXPECT_EQ(all.number_fact("samples"), 68U);
  Profile other = sample_profile();
  other.period = 1;
  EXPECT_FALSE(merge(all, other));
  EXPECT_EQ(all.samples.size(), 4U);
}

}  // namespace
