// The wire format of protocol buffers: varints, and fields of a number and a kind. Open it when a profile is refused as
// damaged, or written so that others cannot read it. What the fields mean, proto.cpp knows.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli::profile {

// A message that is none: what() says where and why.
class WireError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class FieldKind : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct Field {
  uint32_t number = 0;
  FieldKind kind = FieldKind::varint;
  uint64_t value = 0;           // of all kinds but bytes
  std::string_view bytes = {};  // of bytes: a text, a message or packed numbers

  // Throws: WireError when the field is of another kind.
  uint64_t number_value() const;
  std::string_view bytes_value() const;
};

// Reads the fields of one message, which outlives it, in turn.
class FieldReader {
 public:
  explicit FieldReader(std::string_view message) noexcept : rest_(message) {}

  // Returns: false at the end of the message. Throws: WireError.
  bool next(Field& field);

 private:
  std::string_view rest_;
};

// Effects: appends the numbers of a repeated field to a list: one, or all that are packed in it. Throws: WireError.
void append_numbers(const Field& field, std::vector<uint64_t>& numbers);

// Builds a message. Fields that are 0 or empty are left out, as the format has it.
class FieldWriter {
 public:
  FieldWriter& number(uint32_t field, uint64_t value);
  FieldWriter& text(uint32_t field, std::string_view bytes);
  // Also if it is empty: an element of a list.
  FieldWriter& element(uint32_t field, std::string_view bytes);
  FieldWriter& packed(uint32_t field, const std::vector<uint64_t>& numbers);

  const std::string& message() const noexcept { return message_; }

 private:
  void varint(uint64_t value);
  std::string message_;
};

}  // namespace sluice::cli::profile
