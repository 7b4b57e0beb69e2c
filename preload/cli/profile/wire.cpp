// Reads and writes varints and fields. Open it with wire.hpp.
#include "wire.hpp"

#include <fmt/core.h>

namespace sluice::cli::profile {
namespace {

constexpr unsigned longest_varint = 10;  // bytes of 7 bits each, for 64 bits

uint64_t take_varint(std::string_view& rest) {
  uint64_t value = 0;
  for (unsigned i = 0; i < longest_varint; ++i) {
    if (i == rest.size()) throw WireError("a number is cut off");
    const auto byte = static_cast<unsigned char>(rest[i]);
    if (i == longest_varint - 1 && byte > 1) break;
    value |= uint64_t{byte & 0x7fU} << (7 * i);
    if (byte < 0x80) {
      rest.remove_prefix(i + 1);
      return value;
    }
  }
  throw WireError("a number has more than 64 bits");
}

uint64_t take_fixed(std::string_view& rest, unsigned size) {
  if (rest.size() < size) throw WireError("a number is cut off");
  uint64_t value = 0;
  for (unsigned i = 0; i < size; ++i)
    value |= uint64_t{static_cast<unsigned char>(rest[i])} << (8 * i);
  rest.remove_prefix(size);
  return value;
}

std::string_view take_bytes(std::string_view& rest) {
  const uint64_t size = take_varint(rest);
  if (size > rest.size()) throw WireError(fmt::format("a field of {} bytes ends behind its message", size));
  const std::string_view bytes = rest.substr(0, size);
  rest.remove_prefix(size);
  return bytes;
}

}  // namespace

uint64_t Field::number_value() const {
  if (kind == FieldKind::bytes) throw WireError(fmt::format("field {} is no number", number));
  return value;
}

std::string_view Field::bytes_value() const {
  if (kind != FieldKind::bytes) throw WireError(fmt::format("field {} is a number", number));
  return bytes;
}

bool FieldReader::next(Field& field) {
  if (rest_.empty()) return false;
  const uint64_t key = take_varint(rest_);
  const uint64_t number = key >> 3;
  constexpr uint64_t most = (1U << 29) - 1;
  if (number == 0 || number > most) throw WireError(fmt::format("there can be no field {}", number));
  field = {static_cast<uint32_t>(number), static_cast<FieldKind>(key & 7)};
  switch (field.kind) {
    case FieldKind::varint:
      field.value = take_varint(rest_);
      return true;
    case FieldKind::fixed64:
      field.value = take_fixed(rest_, 8);
      return true;
    case FieldKind::bytes:
      field.bytes = take_bytes(rest_);
      return true;
    case FieldKind::fixed32:
      field.value = take_fixed(rest_, 4);
      return true;
  }
  throw WireError(fmt::format("field {} is of an unknown kind", number));
}

void append_numbers(const Field& field, std::vector<uint64_t>& numbers) {
  if (field.kind != FieldKind::bytes) {
    numbers.push_back(field.value);
    return;
  }
  for (std::string_view rest = field.bytes; !rest.empty();)
    numbers.push_back(take_varint(rest));
}

void FieldWriter::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    message_ += static_cast<char>(value | 0x80);
  message_ += static_cast<char>(value);
}

FieldWriter& FieldWriter::number(uint32_t field, uint64_t value) {
  if (value == 0) return *this;
  varint(uint64_t{field} << 3);
  varint(value);
  return *this;
}

FieldWriter& FieldWriter::text(uint32_t field, std::string_view bytes) {
  return bytes.empty() ? *this : element(field, bytes);
}

FieldWriter& FieldWriter::element(uint32_t field, std::string_view bytes) {
  varint(uint64_t{field} << 3 | static_cast<unsigned>(FieldKind::bytes));
  varint(bytes.size());
  message_ += bytes;
  return *this;
}

FieldWriter& FieldWriter::packed(uint32_t field, const std::vector<uint64_t>& numbers) {
  FieldWriter all;
  for (const uint64_t each : numbers)
    all.varint(each);
  return text(field, all.message_);
}

}  // namespace sluice::cli::profile
