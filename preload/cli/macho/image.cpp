// See image.hpp.
#include "macho/image.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/core.h>

namespace sluice::cli::macho {
namespace {

constexpr uint32_t universal_magic = 0xcafebabe, universal_magic_64 = 0xcafebabf;
constexpr uint32_t most_slices = 30;  // a class file of Java begins as a universal file with 45 slices and more
constexpr size_t most_command_bytes = size_t{1} << 20;
constexpr uint32_t most_blobs = 64;
constexpr size_t most_entitlement_bytes = size_t{1} << 20;
constexpr size_t longest_name = 256;

enum class Order { lowest_first, highest_first };

// Numbers of a piece of the file; 0 behind its end.
class Bytes {
 public:
  Bytes(std::string_view bytes, Order order) : bytes_(bytes), order_(order) {}

  size_t size() const { return bytes_.size(); }

  uint64_t number(size_t at, size_t length) const {
    if (at > bytes_.size() || length > bytes_.size() - at) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < length; ++i) {
      const size_t place = order_ == Order::highest_first ? i : length - 1 - i;
      value = value << 8 | static_cast<unsigned char>(bytes_[at + place]);
    }
    return value;
  }
  uint32_t word(size_t at) const { return static_cast<uint32_t>(number(at, 4)); }

  // A name in a field of 16 bytes.
  std::string_view name(size_t at) const {
    const std::string_view field = at < bytes_.size() ? bytes_.substr(at, 16) : std::string_view();
    return field.substr(0, field.find('\0'));
  }
  Bytes from(size_t at) const { return {at < bytes_.size() ? bytes_.substr(at) : std::string_view(), order_}; }

 private:
  std::string_view bytes_;
  Order order_;
};

// A part of the file: places behind its end read as nothing.
class Part {
 public:
  Part(const Read& read, uint64_t offset, uint64_t size) : read_(read), offset_(offset), size_(size) {}

  std::string bytes(uint64_t at, size_t size) const {
    if (at >= size_ || at > UINT64_MAX - offset_) return {};
    return read_(offset_ + at, static_cast<size_t>(std::min<uint64_t>(size, size_ - at)));
  }
  Part part(uint64_t at, uint64_t size) const {
    if (at >= size_ || at > UINT64_MAX - offset_) return {read_, 0, 0};
    return {read_, offset_ + at, std::min(size, size_ - at)};
  }
  // A name that ends with a zero.
  std::string text(uint64_t at) const {
    const std::string found = bytes(at, longest_name);
    const size_t end = found.find('\0');
    return end == std::string::npos ? std::string() : found.substr(0, end);
  }

 private:
  const Read& read_;
  uint64_t offset_, size_;
};

// The entitlements are a property list in XML: <key>NAME</key> and what it is.
std::vector<std::string> true_keys(std::string_view list) {
  constexpr std::string_view begin = "<key>", end = "</key>", is_true = "<true/>";
  std::vector<std::string> keys;
  for (size_t at = list.find(begin); at != std::string_view::npos; at = list.find(begin, at)) {
    const size_t name = at + begin.size();
    const size_t behind = list.find(end, name);
    if (behind == std::string_view::npos) break;
    const size_t value = list.find_first_not_of(" \t\r\n", behind + end.size());
    if (value != std::string_view::npos && list.substr(value).starts_with(is_true) && behind - name < longest_name)
      keys.emplace_back(list.substr(name, behind - name));
    at = behind;
  }
  return keys;
}

void read_code_directory(const Part& blob, Signature& signature) {
  constexpr size_t version_at = 8, flags_at = 12, team_at = 48, head_bytes = 52;
  constexpr uint32_t version_with_team = 0x20200;
  const std::string head = blob.bytes(0, head_bytes);
  const Bytes fields(head, Order::highest_first);
  signature.flags = fields.word(flags_at);
  if (fields.word(version_at) >= version_with_team && fields.word(team_at) != 0)
    signature.team = blob.text(fields.word(team_at));
}

std::optional<Signature> read_signature(const Part& part) {
  constexpr uint32_t signature_magic = 0xfade0cc0, directory_magic = 0xfade0c02, entitlements_magic = 0xfade7171;
  constexpr uint32_t kind_directory = 0, kind_entitlements = 5;
  constexpr size_t head_bytes = 12, entry_bytes = 8, blob_head_bytes = 8;
  const std::string head = part.bytes(0, head_bytes + most_blobs * entry_bytes);
  const Bytes fields(head, Order::highest_first);
  if (fields.word(0) != signature_magic) return std::nullopt;
  Signature signature;
  bool has_directory = false;
  const uint32_t count = std::min(fields.word(8), most_blobs);
  for (size_t i = 0; i < count && head_bytes + (i + 1) * entry_bytes <= head.size(); ++i) {
    const uint32_t kind = fields.word(head_bytes + i * entry_bytes);
    const uint32_t at = fields.word(head_bytes + i * entry_bytes + 4);
    const std::string blob_head = part.bytes(at, blob_head_bytes);
    const Bytes blob(blob_head, Order::highest_first);
    const uint32_t length = blob.word(4);
    if (kind == kind_directory && blob.word(0) == directory_magic) {
      read_code_directory(part.part(at, length), signature);
      has_directory = true;
    } else if (kind == kind_entitlements && blob.word(0) == entitlements_magic && length > blob_head_bytes) {
      signature.entitlements = true_keys(part.bytes(
          uint64_t{at} + blob_head_bytes, std::min<size_t>(length - blob_head_bytes, most_entitlement_bytes)));
    }
  }
  return has_directory ? std::optional(signature) : std::nullopt;
}

bool has_restrict_section(const Bytes& segment) {
  constexpr size_t segment_bytes = 72, section_bytes = 80, count_at = 64;
  if (segment.name(8) != "__RESTRICT") return false;
  for (size_t i = 0; i < segment.word(count_at) && segment_bytes + (i + 1) * section_bytes <= segment.size(); ++i)
    if (segment.name(segment_bytes + i * section_bytes) == "__restrict") return true;
  return false;
}

void read_commands(const Part& part, const Bytes& commands, uint32_t count, Slice& slice) {
  constexpr uint32_t command_segment_64 = 0x19, command_signature = 0x1d;
  constexpr uint32_t least_bytes = 8;
  size_t at = 0;
  for (uint32_t i = 0; i < count && at + least_bytes <= commands.size(); ++i) {
    const Bytes command = commands.from(at);
    const uint32_t bytes = command.word(4);
    if (bytes < least_bytes || bytes > command.size()) return;
    if (command.word(0) == command_segment_64 && has_restrict_section(command)) slice.has_restrict_segment = true;
    if (command.word(0) == command_signature)
      slice.signature = read_signature(part.part(command.word(8), command.word(12)));
    at += bytes;
  }
}

std::optional<Slice> read_slice(const Part& part) {
  constexpr uint32_t magic_32 = 0xfeedface, magic_64 = 0xfeedfacf, kind_library = 6, variant_mask = 0xffffff;
  constexpr size_t head_bytes_64 = 32, head_bytes_32 = 28;
  const std::string head = part.bytes(0, head_bytes_64);
  const bool highest_first = Bytes(head, Order::highest_first).word(0) == magic_32;  // of PowerPC
  const Bytes fields(head, highest_first ? Order::highest_first : Order::lowest_first);
  if ((fields.word(0) != magic_64 && fields.word(0) != magic_32) || head.size() < head_bytes_32) return std::nullopt;
  Slice slice;
  slice.processor = fields.word(4);
  slice.variant = fields.word(8) & variant_mask;
  slice.is_library = fields.word(12) == kind_library;
  if (fields.word(0) == magic_32) return slice;  // nothing runs it any more
  const std::string commands = part.bytes(head_bytes_64, std::min<size_t>(fields.word(20), most_command_bytes));
  read_commands(part, Bytes(commands, Order::lowest_first), fields.word(16), slice);
  return slice;
}

}  // namespace

bool Signature::has_entitlement(std::string_view name) const {
  return std::find(entitlements.begin(), entitlements.end(), name) != entitlements.end();
}

std::vector<Slice> read_image(const Read& read) {
  const Part file(read, 0, UINT64_MAX);
  const std::string head = file.bytes(0, 8 + most_slices * 32);
  const Bytes fields(head, Order::highest_first);
  const bool is_64 = fields.word(0) == universal_magic_64;
  std::vector<Slice> slices;
  if (!is_64 && fields.word(0) != universal_magic) {
    if (const auto slice = read_slice(file)) slices.push_back(*slice);
    return slices;
  }
  const size_t entry_bytes = is_64 ? 32 : 20;
  const uint32_t count = fields.word(4);
  for (size_t i = 0; count <= most_slices && i < count; ++i) {
    const Bytes entry = fields.from(8 + i * entry_bytes);
    if (entry.size() < entry_bytes) break;
    const uint64_t at = is_64 ? entry.number(8, 8) : entry.word(8);
    const uint64_t size = is_64 ? entry.number(16, 8) : entry.word(12);
    if (const auto slice = read_slice(file.part(at, size))) slices.push_back(*slice);
  }
  return slices;
}

std::string processor_name(const Slice& slice) {
  switch (slice.processor) {
    case x86:
      return "i386";
    case x86_64:
      return "x86_64";
    case arm:
      return "32-bit arm";
    case arm64:
      return slice.variant == variant_arm64e ? "arm64e" : "arm64";
    case powerpc:
      return "PowerPC";
    default:
      return fmt::format("processor {}", slice.processor);
  }
}

std::string processor_names(const std::vector<Slice>& slices) {
  std::string names;
  for (size_t i = 0; i < slices.size(); ++i)
    names += (i == 0 ? "" : i + 1 < slices.size() ? ", " : " and ") + processor_name(slices[i]);
  return names;
}

}  // namespace sluice::cli::macho
