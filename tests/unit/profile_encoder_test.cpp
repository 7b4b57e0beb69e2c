// The profile's file: what is encoded is read back by a small parser of protocol buffers.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "profile/profile.hpp"
#include "profiled.hpp"
#include "stats/profile_encoder.hpp"
#include "stats/protobuf.hpp"

namespace {

using namespace sluice;
using std::string;
using std::string_view;

// The fields of a message, in order: a number, or the bytes of a text, a message or a list.
struct Field {
  unsigned number;
  uint64_t value;
  string_view bytes;
};

uint64_t take_varint(string_view& text) {
  uint64_t value = 0;
  for (unsigned shift = 0; !text.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) break;
  }
  return value;
}

std::vector<Field> fields_of(string_view text) {
  std::vector<Field> fields;
  while (!text.empty()) {
    const uint64_t tag = take_varint(text);
    Field field{static_cast<unsigned>(tag >> 3), 0, {}};
    if ((tag & 7) == 0) {
      field.value = take_varint(text);
    } else if ((tag & 7) == 2) {
      const uint64_t length = take_varint(text);
      if (length > text.size()) return {};
      field.bytes = text.substr(0, length);
      text.remove_prefix(length);
    } else {
      return {};
    }
    fields.push_back(field);
  }
  return fields;
}

std::vector<uint64_t> numbers_of(string_view text) {
  std::vector<uint64_t> numbers;
  while (!text.empty())
    numbers.push_back(take_varint(text));
  return numbers;
}

struct Profile {
  std::vector<string> strings;
  std::vector<string> types;
  std::map<uint64_t, uint64_t> addresses;                    // by location
  std::map<uint64_t, uint64_t> mappings;                     // of locations
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> ranges;  // of mappings
  std::vector<std::vector<uint64_t>> stacks, values;         // of samples
  uint64_t period = 0;
  string default_type;

  explicit Profile(const string& text) {
    const std::vector<Field> fields = fields_of(text);
    for (const Field& field : fields)
      if (field.number == 6) strings.emplace_back(field.bytes);
    for (const Field& field : fields)
      read(field);
  }

  uint64_t sum(size_t type) const {
    uint64_t result = 0;
    for (const auto& sample : values)
      result += sample[type];
    return result;
  }

 private:
  void read(const Field& field) {
    std::map<unsigned, std::vector<Field>> parts;
    if (field.number <= 4)
      for (const Field& part : fields_of(field.bytes))
        parts[part.number].push_back(part);
    const auto number = [&](unsigned part) { return parts.count(part) != 0 ? parts[part].front().value : 0; };
    switch (field.number) {
      case 1:
        types.push_back(strings[number(1)] + "/" + strings[number(2)]);
        break;
      case 2:
        stacks.push_back(numbers_of(parts[1].front().bytes));
        values.push_back(numbers_of(parts[2].front().bytes));
        break;
      case 3:
        ranges[number(1)] = {number(2), number(3)};
        break;
      case 4:
        addresses[number(1)] = number(3);
        mappings[number(1)] = number(2);
        break;
      case 12:
        period = field.value;
        break;
      case 14:
        default_type = strings[field.value];
        break;
      default:
        break;
    }
  }
};

__attribute__((noinline)) void* allocate_here(size_t size) {
  void* const block = test::allocate(size);
  asm volatile("" : : "r"(block) : "memory");
  return block;
}

string encode() {
  const stats::EncodedProfile file(true, {static_cast<uint64_t>(getpid()), nullptr, {}});
  if (file.outcome() != stats::EncodedProfile::Outcome::Done) return "";
  return string(file.first()) + string(file.second());
}

TEST(ProfileEncoder, WhatWasSampledIsReadBack) {
  EXPECT_EQ(test::profiled(1,
                           []() -> string {
                             void* const kept = allocate_here(1000);
                             heap::free(allocate_here(500));
                             const Profile profile(encode());
                             heap::free(kept);
                             const std::vector<string> types = {"alloc_objects/count",
                                                                "alloc_space/bytes",
                                                                "inuse_objects/count",
                                                                "inuse_space/bytes",
                                                                "peak_objects/count",
                                                                "peak_space/bytes",
                                                                "freed_elsewhere_objects/count",
                                                                "short_lived_objects/count",
                                                                "lifetime_total/milliseconds"};
                             if (profile.types != types) return "other types";
                             if (profile.period != 1 || profile.default_type != "inuse_space")
                               return "another period or default";
                             if (profile.sum(0) != 2 || profile.sum(1) != 1500)
                               return "allocated " + std::to_string(profile.sum(1));
                             if (profile.sum(2) != 1 || profile.sum(3) != 1000)
                               return "alive " + std::to_string(profile.sum(3));
                             if (profile.sum(5) != 1500) return "at the peak " + std::to_string(profile.sum(5));
                             if (profile.sum(7) != 1) return "short lives";
                             for (const auto& sample : profile.values)
                               if (sample.size() != types.size()) return "a value is missing";
                             return "";
                           }),
            "");
}

TEST(ProfileEncoder, EachFrameLiesInItsMapping) {
  EXPECT_EQ(test::profiled(1,
                           []() -> string {
                             void* const block = allocate_here(1000);
                             const Profile profile(encode());
                             heap::free(block);
                             bool found = false;
                             for (const auto& stack : profile.stacks) {
                               if (stack.size() < 3) return "a short stack";
                               for (const uint64_t location : stack) {
                                 const uint64_t address = profile.addresses.at(location);
                                 const auto range = profile.ranges.find(profile.mappings.at(location));
                                 if (range == profile.ranges.end()) return "no mapping";
                                 if (address < range->second.first || address >= range->second.second)
                                   return "another mapping";
                                 found = found || address - reinterpret_cast<uint64_t>(&allocate_here) < 1024;
                               }
                             }
                             return found ? "" : "the caller is missing";
                           }),
            "");
}

TEST(ProfileEncoder, CommentsTellOfTheProcess) {
  EXPECT_EQ(test::profiled(1,
                           []() -> string {
                             heap::free(allocate_here(1000));
                             const Profile profile(encode());
                             const auto has = [&](const string& text) {
                               for (const string& found : profile.strings)
                                 if (found.rfind(text, 0) == 0) return true;
                               return false;
                             };
                             for (const string text :
                                  {"sluice.program=", "sluice.version=", "sluice.samples=1", "sluice.dropped=0",
                                   "sluice.truncated=0", "sluice.peak_ns=", "sluice.timeline="})
                               if (!has(text)) return text;
                             return has("sluice.pid=" + std::to_string(getpid())) ? "" : "pid";
                           }),
            "");
}

TEST(ProfileEncoder, AThreadInTheProfileIsNotWaitedForInAHandler) {
  EXPECT_EQ(test::profiled(1,
                           []() -> string {
                             heap::free(allocate_here(1000));
                             const profile::Reading held(true);
                             const stats::EncodedProfile file(false, {static_cast<uint64_t>(getpid()), nullptr, {}});
                             return file.outcome() == stats::EncodedProfile::Outcome::Busy ? "" : "it was encoded";
                           }),
            "");
}

TEST(Protobuf, WhatDoesNotFitIsNeverHalfThereUnseen) {
  for (size_t capacity = 0; capacity < 64; ++capacity) {
    char memory[64];
    stats::Protobuf out(memory, capacity);
    out.number(1, 300);
    out.message(2, [&]() noexcept { out.text(3, "twelve bytes"); });
    EXPECT_LE(out.bytes().size(), capacity);
    if (out.full()) continue;
    const std::vector<Field> fields = fields_of(out.bytes());
    ASSERT_EQ(fields.size(), 2U) << capacity;
    EXPECT_EQ(fields[0].value, 300U);
    ASSERT_EQ(fields_of(fields[1].bytes).size(), 1U);
    EXPECT_EQ(fields_of(fields[1].bytes)[0].bytes, "twelve bytes");
  }
}

TEST(Protobuf, LongMessagesHaveTheirLengthInFront) {
  std::vector<char> memory(100'000);
  stats::Protobuf out(memory.data(), memory.size());
  const string text(20'000, 'x');
  out.message(2, [&]() noexcept { out.text(3, text); });
  const std::vector<Field> fields = fields_of(out.bytes());
  ASSERT_EQ(fields.size(), 1U);
  EXPECT_EQ(fields_of(fields[0].bytes)[0].bytes, text);
}

}  // namespace
