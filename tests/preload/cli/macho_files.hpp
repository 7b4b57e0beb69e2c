// Files of macOS made up for tests: headers, load commands, signatures. Open it to make another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "macho/image.hpp"

namespace sluice::test {

inline std::string number(uint64_t value, size_t bytes, bool highest_first) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i)
    text += static_cast<char>(value >> 8 * (highest_first ? bytes - 1 - i : i));
  return text;
}
inline std::string low(uint64_t value, size_t bytes = 4) {
  return number(value, bytes, false);
}
inline std::string high(uint64_t value, size_t bytes = 4) {
  return number(value, bytes, true);
}

struct Made {
  uint32_t processor = cli::macho::arm64;
  uint32_t variant = 0;
  bool is_library = false;
  bool has_restrict_segment = false;
  bool is_signed = true;
  uint32_t flags = 0;
  std::string team = {};
  std::vector<std::pair<std::string, bool>> entitlements = {};
};

inline std::string signature_of(const Made& made) {
  std::string directory = high(0x20400) + high(made.flags) + std::string(32, '\0');
  const std::string rest = made.team.empty() ? std::string() : made.team + '\0';
  directory += high(made.team.empty() ? 0 : 52) + rest;
  directory = high(0xfade0c02) + high(8 + directory.size()) + directory;
  std::string list = "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict>\n";
  for (const auto& [name, value] : made.entitlements)
    list += "\t<key>" + name + "</key>\n\t" + (value ? "<true/>" : "<false/>") + "\n";
  list += "</dict></plist>";
  list = high(0xfade7171) + high(8 + list.size()) + list;
  const size_t head = 12 + 2 * 8;
  return high(0xfade0cc0) + high(head + directory.size() + list.size()) + high(2) + high(0) + high(head) + high(5) +
         high(head + directory.size()) + directory + list;
}

inline std::string padded(std::string text, size_t size) {
  text.resize(size, '\0');
  return text;
}

inline std::string make(const Made& made) {
  std::string commands;
  uint32_t count = 0;
  if (made.has_restrict_segment) {
    commands += low(0x19) + low(72 + 80) + padded("__RESTRICT", 16) + std::string(40 - 8, '\0') + low(1) + low(0);
    commands = padded(commands, 72 - 8) + low(1) + low(0);
    commands += padded("__restrict", 16) + padded("__RESTRICT", 16) + std::string(48, '\0');
    ++count;
  }
  const std::string signature = made.is_signed ? signature_of(made) : std::string();
  const size_t with_signature = commands.size() + (made.is_signed ? 16 : 0);
  if (made.is_signed) {
    commands += low(0x1d) + low(16) + low(32 + with_signature) + low(signature.size());
    ++count;
  }
  return low(0xfeedfacf) + low(made.processor) + low(made.variant) + low(made.is_library ? 6 : 2) + low(count) +
         low(commands.size()) + low(0) + low(0) + commands + signature;
}

inline std::string make_universal(const std::vector<Made>& all, bool is_64 = false) {
  const size_t entry = is_64 ? 32 : 20;
  std::string head = high(is_64 ? 0xcafebabf : 0xcafebabe) + high(all.size());
  std::string slices;
  for (const Made& each : all) {
    const std::string slice = make(each);
    const size_t at = 8 + all.size() * entry + slices.size();
    head += high(each.processor) + high(each.variant);
    head += is_64 ? high(at, 8) + high(slice.size(), 8) + high(0) + high(0) : high(at) + high(slice.size()) + high(0);
    slices += slice;
  }
  return head + slices;
}

// Reads as a file does, and fails the test that asks for more than there may be.
inline cli::macho::Read read_from(const std::string& bytes, size_t* most = nullptr) {
  return [&bytes, most](uint64_t offset, size_t size) {
    if (most != nullptr && size > *most) *most = size;
    return offset < bytes.size() ? bytes.substr(offset, size) : std::string();
  };
}

}  // namespace sluice::test
