// What a file of macOS says of itself, and whether the loader inserts a library into it; also of files that are cut off
// or damaged.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "macho/image.hpp"
#include "macho/insertion.hpp"
#include "macho_files.hpp"

namespace sluice::cli::macho {
namespace {

using test::Made;
using test::make;
using test::make_universal;
using test::read_from;

constexpr const char* variables = "com.apple.security.cs.allow-dyld-environment-variables";
constexpr const char* others = "com.apple.security.cs.disable-library-validation";

std::vector<Slice> read(const std::string& bytes) {
  return read_image(read_from(bytes));
}

std::string why(const Made& program, const ProgramFile& file = {.path = "/Users/me/program"}) {
  const std::string library = make_universal({{.is_library = true}, {.processor = x86_64, .is_library = true}});
  return obstacle(file, read(make(program)), read(library), arm64).value_or("");
}

TEST(MachO, TellsTheProcessorsOfAFile) {
  EXPECT_EQ(processor_names(read(make({}))), "arm64");
  EXPECT_EQ(processor_names(read(make({.variant = 0x80000000 | variant_arm64e}))), "arm64e");
  for (const bool is_64 : {false, true})
    EXPECT_EQ(processor_names(read(make_universal(
                  {{.processor = x86_64, .variant = 3}, {.variant = variant_arm64e}, {.processor = 99}}, is_64))),
              "x86_64, arm64e and processor 99");
  const std::string powerpc = test::high(0xfeedface) + test::high(macho::powerpc) + std::string(20, '\0');
  EXPECT_EQ(processor_names(read(powerpc)), "PowerPC");
}

TEST(MachO, IsNothingElse) {
  EXPECT_TRUE(read("").empty());
  EXPECT_TRUE(read("#!/bin/sh\n").empty());
  EXPECT_TRUE(read("\x7f"
                   "ELF\2\1\1" +
                   std::string(200, '\0'))
                  .empty());
  const std::string class_of_java = test::high(0xcafebabe) + test::high(52) + std::string(2000, '\1');
  EXPECT_TRUE(read(class_of_java).empty());
}

TEST(MachO, ReadsTheSignature) {
  const Made made = {
      .flags = flag_runtime | flag_ad_hoc, .team = "TEAM", .entitlements = {{"a.b", true}, {"c", false}}};
  const std::vector<Slice> slices = read(make(made));
  ASSERT_EQ(slices.size(), 1U);
  ASSERT_TRUE(slices[0].signature);
  EXPECT_EQ(slices[0].signature->flags, flag_runtime | flag_ad_hoc);
  EXPECT_EQ(slices[0].signature->team, "TEAM");
  EXPECT_TRUE(slices[0].signature->has_entitlement("a.b"));
  EXPECT_FALSE(slices[0].signature->has_entitlement("c"));
  EXPECT_FALSE(read(make({.is_signed = false}))[0].signature);
}

TEST(Insertion, WorksWhereNothingIsInTheWay) {
  EXPECT_EQ(why({}), "");
  EXPECT_EQ(why({.is_signed = false}), "");
  EXPECT_EQ(why({.processor = x86_64}), "") << "translated";
  EXPECT_EQ(why({.flags = flag_runtime, .entitlements = {{variables, true}, {others, true}}}), "");
  EXPECT_EQ(why({}, {.path = "/usr/local/bin/program"}), "");
  EXPECT_EQ(why({}, {.path = "/Users/me/bin/usr"}), "");
}

TEST(Insertion, DoesNotReachTheSystemsOwnPrograms) {
  for (const char* path :
       {"/bin/ls", "/sbin/mount", "/usr/bin/env", "/System/Applications/Mail.app/Contents/MacOS/Mail"})
    EXPECT_NE(why({}, {.path = path}).find("System Integrity Protection"), std::string::npos) << path;
  EXPECT_NE(why({}, {.path = "/opt/x", .is_restricted = true}).find("System Integrity Protection"), std::string::npos);
}

TEST(Insertion, DoesNotReachProgramsWithMoreRights) {
  EXPECT_EQ(why({}, {.path = "/opt/x", .is_setuid = true}), "is setuid");
  EXPECT_EQ(why({}, {.path = "/opt/x", .is_setgid = true}), "is setgid");
}

TEST(Insertion, IsLostWhereAShellRunsTheFile) {
  const std::vector<Slice> library = read(make({.is_library = true}));
  for (const char* content : {"", "echo without a first line\n"})
    EXPECT_NE(obstacle({.path = "/x"}, read(content), library, arm64).value_or("").find("no program of macOS"),
              std::string::npos);
  EXPECT_FALSE(obstacle({.path = "/x", .can_be_read = false}, {}, library, arm64)) << "no telling";
}

TEST(Insertion, GoesByTheSignaturesFlags) {
  EXPECT_NE(why({.flags = flag_runtime}).find(variables), std::string::npos);
  EXPECT_NE(why({.flags = flag_runtime, .entitlements = {{variables, false}, {others, true}}}).find(variables),
            std::string::npos);
  EXPECT_NE(why({.flags = flag_runtime, .entitlements = {{variables, true}}}).find(others), std::string::npos);
  EXPECT_NE(why({.flags = flag_library_validation}).find(others), std::string::npos);
  EXPECT_EQ(why({.flags = flag_restrict}), "is signed with the flag `restrict`");
  EXPECT_EQ(why({.has_restrict_segment = true}), "has a segment __RESTRICT");
}

TEST(Insertion, TakesALibraryOfTheSameSigner) {
  const Made program = {.flags = flag_library_validation, .team = "TEAM"};
  for (const char* team : {"TEAM", "OTHER", ""}) {
    const std::string library = make({.is_library = true, .team = team});
    const auto found = obstacle({.path = "/x"}, read(make(program)), read(library), arm64);
    EXPECT_EQ(found.has_value(), std::string(team) != "TEAM") << team;
  }
}

TEST(Insertion, NeedsTheProgramsProcessor) {
  EXPECT_EQ(why({.variant = variant_arm64e}), "runs as arm64e, and the library is for arm64 and x86_64");
  EXPECT_EQ(why({.processor = x86}), "is for i386, which this machine does not run");
  const std::vector<Slice> library = read(make({.processor = x86_64, .is_library = true}));
  EXPECT_TRUE(obstacle({.path = "/x"}, read(make({})), library, arm64));
  EXPECT_TRUE(obstacle({.path = "/x"}, read(make({})), library, x86_64)) << "not translated there";
  const std::vector<Slice> universal = read(make_universal({{.processor = x86_64}, {.variant = variant_arm64e}}));
  EXPECT_FALSE(obstacle({.path = "/x"}, universal, library, x86_64));
  EXPECT_TRUE(obstacle({.path = "/x"}, universal, library, arm64));
}

// Whatever is read of it, it is used.
void look_at(const std::string& bytes) {
  size_t most = 0;
  const std::vector<Slice> slices = read_image(read_from(bytes, &most));
  EXPECT_LE(most, size_t{1} << 20) << "memory by a number of the file";
  EXPECT_LE(slices.size(), 30U);
  EXPECT_LT(processor_names(slices).size(), 1000U);
  (void)obstacle({.path = "/x"}, slices, slices, arm64);
}

std::vector<std::string> samples() {
  const Made full = {.has_restrict_segment = true,
                     .flags = flag_runtime,
                     .team = "TEAM",
                     .entitlements = {{variables, true}, {others, true}}};
  return {make(full), make_universal({full, full}), make_universal({full, {.processor = x86_64}}, true)};
}

TEST(MachO, MayBeCutOffAnywhere) {
  for (const std::string& whole : samples())
    for (size_t size = 0; size <= whole.size(); ++size)
      look_at(whole.substr(0, size));
}

TEST(MachO, MayBeDamagedAnywhere) {
  std::mt19937 random(1);
  for (const std::string& whole : samples()) {
    for (size_t at = 0; at < whole.size(); ++at) {
      for (const char value : {'\0', '\xff', '\x7f', '\x80'}) {
        std::string damaged = whole;
        damaged[at] = value;
        look_at(damaged);
      }
    }
    for (int round = 0; round < 20000; ++round) {
      std::string damaged = whole;
      for (unsigned changes = random() % 8 + 1; changes != 0; --changes)
        damaged[random() % damaged.size()] = static_cast<char>(random());
      look_at(damaged);
    }
  }
}

// SLUICE_MACHO_FILES: files that a compiler for macOS has made, each with the processor that it is for:
// "arm64=PATH:x86_64=PATH". scripts/port sets it.
TEST(MachO, ReadsWhatACompilerMakes) {
  const char* const files = std::getenv("SLUICE_MACHO_FILES");
  if (files == nullptr) GTEST_SKIP() << "scripts/port runs it";
  const std::string list = std::string(files) + ":";
  for (size_t at = 0, end; (end = list.find(':', at)) != std::string::npos; at = end + 1) {
    const std::string entry = list.substr(at, end - at);
    const size_t equals = entry.find('=');
    std::ifstream file(entry.substr(equals + 1), std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const std::vector<Slice> slices = read(bytes);
    ASSERT_EQ(processor_names(slices), entry.substr(0, equals)) << entry;
    EXPECT_EQ(slices[0].is_library, entry.ends_with(".dylib")) << entry;
    EXPECT_EQ(obstacle({.path = "/x"}, slices, slices, slices[0].processor), std::nullopt) << entry;
    if (slices[0].processor == arm64) {
      ASSERT_TRUE(slices[0].signature) << entry;
      EXPECT_EQ(slices[0].signature->flags & (flag_ad_hoc | flag_runtime), flag_ad_hoc) << entry;
    }
  }
}

}  // namespace
}  // namespace sluice::cli::macho
