// See frame_rules.hpp.
#include "os/frame_rules.hpp"

#include <cstddef>
#include <cstring>

namespace sluice::os {
namespace {

using Byte = unsigned char;

// Numbers of registers, as x86-64 has them.
constexpr uint64_t frame_register = 6, stack_register = 7, return_register = 16;

constexpr unsigned most_remembered = 8;
constexpr int64_t return_offset = -8;  // from the CFA

// Reads forward through a stretch of bytes. What lies beyond its end reads as 0, and `good` is false from then on.
class Cursor {
 public:
  Cursor(const Byte* at, const Byte* end) noexcept : at_(at), end_(end), good_(at <= end) {}

  bool good() const noexcept { return good_; }
  bool at_end() const noexcept { return !good_ || at_ == end_; }
  const Byte* at() const noexcept { return at_; }
  const Byte* end() const noexcept { return end_; }

  template <typename T>
  T value() noexcept {
    T result{};
    if (const Byte* const from = take(sizeof result)) memcpy(&result, from, sizeof result);
    return result;
  }
  uint64_t unsigned_number() noexcept {
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = value<Byte>();
      result |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return result;
    }
    good_ = false;
    return 0;
  }
  int64_t signed_number() noexcept {
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64;) {
      const auto byte = value<Byte>();
      result |= uint64_t{byte & 0x7fu} << shift;
      shift += 7;
      if (byte >= 0x80) continue;
      if ((byte & 0x40) != 0 && shift < 64) result |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(result);
    }
    good_ = false;
    return 0;
  }
  // A stretch of its own, behind which this one goes on.
  Cursor part(uint64_t bytes) noexcept {
    const Byte* const from = take(bytes);
    return from != nullptr ? Cursor(from, from + bytes) : Cursor(end_, end_);
  }
  // An address in one of the usual encodings.
  uintptr_t address(Byte encoding) noexcept {
    const auto base = (encoding & 0x70) == 0x10 ? reinterpret_cast<uintptr_t>(at_) : 0;
    if ((encoding & 0x80) != 0 || ((encoding & 0x70) != 0x10 && (encoding & 0x70) != 0)) good_ = false;
    return base + offset(encoding);
  }
  // A number in the format of an encoding.
  uintptr_t offset(Byte encoding) noexcept {
    switch (encoding & 0x0f) {
      case 0x0:
      case 0x4:
      case 0xc:
        return value<uint64_t>();
      case 0x3:
        return value<uint32_t>();
      case 0xb:
        return static_cast<uintptr_t>(int64_t{value<int32_t>()});
      default:
        good_ = false;
        return 0;
    }
  }

 private:
  const Byte* take(uint64_t bytes) noexcept {
    if (!good_ || bytes > static_cast<uint64_t>(end_ - at_)) {
      good_ = false;
      return nullptr;
    }
    const Byte* const from = at_;
    at_ += bytes;
    return from;
  }

  const Byte* at_;
  const Byte* end_;
  bool good_;
};

// What a common entry says of the functions that refer to it.
struct Common {
  uint64_t code_factor;
  int64_t data_factor;
  Byte encoding;
  bool has_data;
  bool is_signal;
  bool understood;
  Cursor instructions;
};

Common not_understood() noexcept {
  return {1, 1, 0, false, false, false, {nullptr, nullptr}};
}

bool read_augmentation(Cursor& c, const char* letters, Common& common) noexcept {
  for (; *letters != '\0'; ++letters) {
    switch (*letters) {
      case 'R':
        common.encoding = c.value<Byte>();
        break;
      case 'P': {
        const auto encoding = c.value<Byte>();
        (void)c.offset(encoding);
        break;
      }
      case 'L':
        (void)c.value<Byte>();
        break;
      case 'S':
        common.is_signal = true;
        break;
      case 'B':
        break;
      default:
        return false;
    }
  }
  return c.good();
}

Common read_common(const Byte* entry, const LoadedObject& object) noexcept {
  if (!object.covers(reinterpret_cast<uintptr_t>(entry))) return not_understood();
  Cursor all(entry, reinterpret_cast<const Byte*>(object.end));
  Cursor c = all.part(all.value<uint32_t>() + uint64_t{0});
  if (c.value<uint32_t>() != 0) return not_understood();
  const auto version = c.value<Byte>();
  const char* letters = reinterpret_cast<const char*>(c.at());
  while (c.good() && c.value<Byte>() != 0) {
  }
  Common common = not_understood();
  common.code_factor = c.unsigned_number();
  common.data_factor = c.signed_number();
  const uint64_t return_column = version == 1 ? c.value<Byte>() : c.unsigned_number();
  if (!c.good() || return_column != return_register) return not_understood();
  common.has_data = *letters == 'z';
  if (common.has_data) {
    Cursor data = c.part(c.unsigned_number());
    if (!read_augmentation(data, letters + 1, common)) return not_understood();
  } else if (*letters != '\0') {
    return not_understood();
  }
  common.instructions = c;
  common.understood = c.good();
  return common;
}

// Runs the instructions that make the table of rules of a function, up to an address.
class Interpreter {
 public:
  explicit Interpreter(const Common& common) noexcept : common_(common) {
    run(common.instructions, 0);
    first_ = now_;
  }

  // `left`: how far the address is from the function's first.
  void run(Cursor c, uint64_t left) noexcept {
    left_ = left;
    passed_ = false;
    while (good_ && !passed_ && !c.at_end()) {
      const auto code = c.value<Byte>();
      switch (code >> 6) {
        case 1:
          advance(code & 0x3fu);
          break;
        case 2:
          save(code & 0x3fu, static_cast<int64_t>(c.unsigned_number()) * common_.data_factor);
          break;
        case 3:
          restore(code & 0x3fu);
          break;
        default:
          if (!run_place(code, c) && !run_cfa(code, c)) run_register(code, c);
      }
      good_ = good_ && c.good();
    }
  }

  FrameRule rule() const noexcept {
    FrameRule rule{};
    if (!good_ || !now_.known) return rule;
    rule.cfa = now_.outermost ? FrameRule::Cfa::Outermost : now_.cfa;
    rule.cfa_offset = static_cast<int32_t>(now_.cfa_offset);
    rule.frame_pointer = now_.frame_pointer;
    rule.frame_pointer_offset = static_cast<int16_t>(now_.frame_pointer_offset);
    if (rule.cfa_offset != now_.cfa_offset || rule.frame_pointer_offset != now_.frame_pointer_offset)
      rule.cfa = FrameRule::Cfa::Unknown;
    return rule;
  }

 private:
  struct State {
    FrameRule::Cfa cfa = FrameRule::Cfa::Unknown;
    FrameRule::Saved frame_pointer = FrameRule::Saved::Same;
    bool known = true;  // where the frame pointer and the return address are
    bool outermost = false;
    int64_t cfa_offset = 0;
    int64_t frame_pointer_offset = 0;
  };

  void advance(uint64_t steps) noexcept {
    const uint64_t bytes = steps * common_.code_factor;
    passed_ = bytes > left_;
    left_ -= bytes;
  }

  void save(uint64_t which, int64_t offset) noexcept {
    if (which == frame_register) {
      now_.frame_pointer = FrameRule::Saved::AtCfa;
      now_.frame_pointer_offset = offset;
    } else if (which == return_register) {
      now_.outermost = false;
      now_.known = now_.known && offset == return_offset;
    }
  }

  void restore(uint64_t which) noexcept {
    if (which == frame_register) {
      now_.frame_pointer = first_.frame_pointer;
      now_.frame_pointer_offset = first_.frame_pointer_offset;
    } else if (which == return_register) {
      now_.outermost = first_.outermost;
    }
  }

  void set_cfa(uint64_t which, int64_t offset) noexcept {
    now_.cfa = which == stack_register   ? FrameRule::Cfa::Stack
               : which == frame_register ? FrameRule::Cfa::Frame
                                         : FrameRule::Cfa::Unknown;
    now_.cfa_offset = offset;
  }

  // Instructions that go to another address, or back to an earlier state.
  bool run_place(Byte code, Cursor& c) noexcept {
    switch (code) {
      case 0x00:
        return true;
      case 0x02:
        return advance(c.value<uint8_t>()), true;
      case 0x03:
        return advance(c.value<uint16_t>()), true;
      case 0x04:
        return advance(c.value<uint32_t>()), true;
      case 0x0a:
        good_ = good_ && remembered_ < most_remembered;
        if (good_) states_[remembered_++] = now_;
        return true;
      case 0x0b:
        good_ = good_ && remembered_ != 0;
        if (good_) now_ = states_[--remembered_];
        return true;
      case 0x2e:  // bytes of arguments on the stack
        (void)c.unsigned_number();
        return true;
      default:
        return false;
    }
  }

  // Instructions that say where the frame begins.
  bool run_cfa(Byte code, Cursor& c) noexcept {
    switch (code) {
      case 0x0c:
      case 0x12: {
        const uint64_t which = c.unsigned_number();
        set_cfa(which,
                code == 0x0c ? static_cast<int64_t>(c.unsigned_number()) : c.signed_number() * common_.data_factor);
        return true;
      }
      case 0x0d:
        set_cfa(c.unsigned_number(), now_.cfa_offset);
        return true;
      case 0x0e:
        now_.cfa_offset = static_cast<int64_t>(c.unsigned_number());
        return true;
      case 0x13:
        now_.cfa_offset = c.signed_number() * common_.data_factor;
        return true;
      case 0x0f:
        set_cfa_expression(c.part(c.unsigned_number()));
        return true;
      default:
        return false;
    }
  }

  // Instructions that say where a register is saved.
  void run_register(Byte code, Cursor& c) noexcept {
    const uint64_t which = c.unsigned_number();
    switch (code) {
      case 0x05:
        return save(which, static_cast<int64_t>(c.unsigned_number()) * common_.data_factor);
      case 0x06:
        return restore(which);
      case 0x07:
        if (which == return_register) now_.outermost = true;
        if (which == frame_register) now_.frame_pointer = FrameRule::Saved::Same;
        return;
      case 0x08:
        if (which == frame_register) now_.frame_pointer = FrameRule::Saved::Same;
        return;
      case 0x09:
      case 0x14:
        (void)c.unsigned_number();
        return lose(which);
      case 0x10:
        return save_expression(which, c.part(c.unsigned_number()));
      case 0x11:
        return save(which, c.signed_number() * common_.data_factor);
      case 0x15:
        (void)c.signed_number();
        return lose(which);
      case 0x16:
        (void)c.part(c.unsigned_number());
        return lose(which);
      default:
        good_ = false;
    }
  }

  void lose(uint64_t which) noexcept {
    if (which == frame_register || which == return_register) now_.known = false;
  }

  // DW_OP_breg6 OFFSET
  void save_expression(uint64_t which, Cursor c) noexcept {
    if (which != frame_register && which != return_register) return;
    const bool from_frame = c.value<Byte>() == 0x70 + frame_register;
    const int64_t offset = c.signed_number();
    if (which != frame_register || !from_frame || !c.at_end() || !c.good()) return lose(which);
    now_.frame_pointer = FrameRule::Saved::AtFrame;
    now_.frame_pointer_offset = offset;
  }

  // DW_OP_breg6 OFFSET DW_OP_deref, the same of breg7, and the one that ld writes for the procedure linkage table.
  void set_cfa_expression(Cursor c) noexcept {
    static constexpr Byte link_table[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
    now_.cfa = FrameRule::Cfa::Unknown;
    now_.cfa_offset = 0;
    if (c.end() - c.at() == sizeof link_table && memcmp(c.at(), link_table, sizeof link_table) == 0) {
      now_.cfa = FrameRule::Cfa::LinkTable;
      return;
    }
    const auto code = c.value<Byte>();
    const int64_t offset = c.signed_number();
    constexpr Byte dereference = 0x06;
    if (c.value<Byte>() != dereference || !c.at_end() || !c.good()) return;
    if (code == 0x70 + frame_register) now_.cfa = FrameRule::Cfa::AtFrame;
    if (code == 0x70 + stack_register) now_.cfa = FrameRule::Cfa::AtStack;
    now_.cfa_offset = offset;
  }

  const Common& common_;
  State now_, first_;
  State states_[most_remembered];
  unsigned remembered_ = 0;
  uint64_t left_ = 0;
  bool passed_ = false;
  bool good_ = true;
};

// The entry of the function in the sorted table of .eh_frame_hdr; null when there is none.
const Byte* find_entry(uintptr_t address, const LoadedObject& object) noexcept {
  constexpr size_t table_offset = 12, row_bytes = 8;
  const Byte* const header = object.unwind_table;
  if (header == nullptr || !object.covers(reinterpret_cast<uintptr_t>(header))) return nullptr;
  Cursor c(header, reinterpret_cast<const Byte*>(object.end));
  // Version, and the encodings that all linkers use: of the table's address, its count, and its rows.
  if (c.value<uint32_t>() != 0x3b031b01) return nullptr;
  (void)c.value<uint32_t>();
  const uint64_t count = c.value<uint32_t>();
  if (!c.good() || count == 0 || count > static_cast<uint64_t>(c.end() - c.at()) / row_bytes) return nullptr;
  const auto number_at = [&](uint64_t row, size_t part) noexcept {
    int32_t number;
    memcpy(&number, header + table_offset + row * row_bytes + part, sizeof number);
    return static_cast<intptr_t>(number);
  };
  const auto offset = static_cast<intptr_t>(address - reinterpret_cast<uintptr_t>(header));
  if (offset < number_at(0, 0)) return nullptr;
  uint64_t low = 0;
  for (uint64_t high = count; high - low > 1;) {
    const uint64_t middle = low + (high - low) / 2;
    (number_at(middle, 0) <= offset ? low : high) = middle;
  }
  const Byte* const entry = header + number_at(low, 4);
  return object.covers(reinterpret_cast<uintptr_t>(entry)) ? entry : nullptr;
}

}  // namespace

FrameRule find_frame_rule(uintptr_t address, const LoadedObject& object) noexcept {
  const Byte* const entry = find_entry(address, object);
  if (entry == nullptr) return {};
  Cursor all(entry, reinterpret_cast<const Byte*>(object.end));
  Cursor c = all.part(all.value<uint32_t>());
  const Byte* const link = c.at();
  const auto back = c.value<uint32_t>();
  if (back == 0) return {};
  const Common common = read_common(link - back, object);
  if (!common.understood) return {};
  const uintptr_t start = c.address(common.encoding);
  const uintptr_t length = c.offset(common.encoding);
  if (!c.good() || address < start || address - start >= length) return {};
  if (common.has_data) (void)c.part(c.unsigned_number());
  FrameRule rule{};
  rule.cfa = FrameRule::Cfa::Signal;
  if (common.is_signal) return rule;
  Interpreter interpreter(common);
  interpreter.run(c, address - start);
  return interpreter.rule();
}

}  // namespace sluice::os
