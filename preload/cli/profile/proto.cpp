// Reads and writes the messages of profile.proto. In a file, texts are indices into one table, and parts have numbers
// (ids) by which others refer to them. Open it with proto.hpp.
#include "proto.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "wire.hpp"

namespace sluice::cli::profile {
namespace {

// The numbers of fields, by message.
namespace number_of {
enum Profile : uint32_t {
  sample_type = 1,
  sample,
  mapping,
  location,
  function,
  string_table,
  time_nanos = 9,
  duration_nanos,
  period_type,
  period,
  comment,
  default_sample_type
};
enum ValueType : uint32_t { type = 1, unit };
enum Sample : uint32_t { location_id = 1, value, label };
enum Label : uint32_t { key = 1, text, number, number_unit };
enum Mapping : uint32_t {
  mapping_id = 1,
  memory_start,
  memory_limit,
  file_offset,
  filename,
  build_id,
  has_functions,
  has_filenames,
  has_line_numbers,
  has_inline_frames
};
enum Location : uint32_t { own_location_id = 1, mapping_of, address, line };
enum Line : uint32_t { function_of = 1, line_number };
enum Function : uint32_t { function_id = 1, name, system_name, file };
}  // namespace number_of

using Ids = std::unordered_map<uint64_t, size_t>;

// Two passes: what has texts and ids of its own first, then what refers to them.
class Decoder {
 public:
  explicit Decoder(std::string_view message) : message_(message) {}

  Profile decode() {
    each_field([&](const Field& field) {
      if (field.number == number_of::string_table) texts_.push_back(field.bytes_value());
    });
    if (texts_.empty()) throw WireError("it has no table of texts");
    if (!texts_.front().empty()) throw WireError("its first text is not empty");
    each_field([&](const Field& field) { take_part(field); });
    each_field([&](const Field& field) {
      if (field.number == number_of::location) take_location(field.bytes_value());
    });
    each_field([&](const Field& field) {
      if (field.number == number_of::sample) take_sample(field.bytes_value());
    });
    return std::move(profile_);
  }

 private:
  template <typename Take>
  void each_field(const Take& take) const {
    each_field_of(message_, take);
  }
  template <typename Take>
  static void each_field_of(std::string_view message, const Take& take) {
    FieldReader reader(message);
    for (Field field; reader.next(field);)
      take(field);
  }

  std::string text_at(uint64_t index) const {
    if (index >= texts_.size()) throw WireError(fmt::format("text {} of {} is not there", index, texts_.size()));
    return std::string(texts_[index]);
  }
  std::string text(const Field& field) const { return text_at(field.number_value()); }

  static int64_t count(const Field& field, const char* what) {
    const auto value = static_cast<int64_t>(field.number_value());
    if (value < 0) throw WireError(fmt::format("{} is negative", what));
    return value;
  }

  // Throws: WireError when there is no such part. Id 0 means that there is none to refer to.
  static size_t index_of(const Ids& ids, uint64_t id, const char* what) {
    if (id == 0) return none;
    const auto found = ids.find(id);
    if (found == ids.end()) throw WireError(fmt::format("{} {} is not there", what, id));
    return found->second;
  }
  static void add_id(Ids& ids, uint64_t id, size_t index, const char* what) {
    if (id == 0) throw WireError(fmt::format("a {} has no id", what));
    if (!ids.emplace(id, index).second) throw WireError(fmt::format("{} {} occurs twice", what, id));
  }

  void take_part(const Field& field) {
    switch (field.number) {
      case number_of::sample_type:
        profile_.types.push_back(value_type(field.bytes_value()));
        break;
      case number_of::mapping:
        take_mapping(field.bytes_value());
        break;
      case number_of::function:
        take_function(field.bytes_value());
        break;
      case number_of::time_nanos:
        profile_.time_nanos = count(field, "its time");
        break;
      case number_of::duration_nanos:
        profile_.duration_nanos = count(field, "its duration");
        break;
      case number_of::period_type:
        profile_.period_type = value_type(field.bytes_value());
        break;
      case number_of::period:
        profile_.period = count(field, "its period");
        break;
      case number_of::comment:
        take_comments(field);
        break;
      case number_of::default_sample_type:
        profile_.default_type = text(field);
        break;
      default:
        break;
    }
  }

  ValueType value_type(std::string_view message) const {
    ValueType type;
    each_field_of(message, [&](const Field& field) {
      if (field.number == number_of::type) type.name = text(field);
      if (field.number == number_of::unit) type.unit = text(field);
    });
    return type;
  }

  void take_comments(const Field& field) {
    std::vector<uint64_t> indices;
    append_numbers(field, indices);
    for (const uint64_t each : indices)
      profile_.comments.push_back(text_at(each));
  }

  void take_mapping(std::string_view message) {
    Mapping mapping;
    uint64_t id = 0;
    each_field_of(message, [&](const Field& field) {
      switch (field.number) {
        case number_of::mapping_id:
          id = field.number_value();
          break;
        case number_of::memory_start:
          mapping.start = field.number_value();
          break;
        case number_of::memory_limit:
          mapping.limit = field.number_value();
          break;
        case number_of::file_offset:
          mapping.offset = field.number_value();
          break;
        case number_of::filename:
          mapping.file = text(field);
          break;
        case number_of::build_id:
          mapping.build_id = text(field);
          break;
        case number_of::has_functions:
          mapping.has_functions = field.number_value() != 0;
          break;
        default:
          break;
      }
    });
    add_id(mapping_ids_, id, profile_.mappings.size(), "mapping");
    profile_.mappings.push_back(std::move(mapping));
  }

  void take_function(std::string_view message) {
    Function function;
    uint64_t id = 0;
    each_field_of(message, [&](const Field& field) {
      if (field.number == number_of::function_id) id = field.number_value();
      if (field.number == number_of::name) function.name = text(field);
      if (field.number == number_of::system_name) function.system_name = text(field);
      if (field.number == number_of::file) function.file = text(field);
    });
    add_id(function_ids_, id, profile_.functions.size(), "function");
    profile_.functions.push_back(std::move(function));
  }

  Line line_of(std::string_view message) const {
    Line line;
    each_field_of(message, [&](const Field& field) {
      if (field.number == number_of::function_of)
        line.function = index_of(function_ids_, field.number_value(), "function");
      if (field.number == number_of::line_number) line.line = static_cast<int64_t>(field.number_value());
    });
    if (line.function == none) throw WireError("a line has no function");
    return line;
  }

  void take_location(std::string_view message) {
    Location location;
    uint64_t id = 0;
    each_field_of(message, [&](const Field& field) {
      if (field.number == number_of::own_location_id) id = field.number_value();
      if (field.number == number_of::mapping_of)
        location.mapping = index_of(mapping_ids_, field.number_value(), "mapping");
      if (field.number == number_of::address) location.address = field.number_value();
      if (field.number == number_of::line) location.lines.push_back(line_of(field.bytes_value()));
    });
    add_id(location_ids_, id, profile_.locations.size(), "location");
    if (profile_.locations.size() == std::numeric_limits<uint32_t>::max()) throw WireError("too many locations");
    profile_.locations.push_back(std::move(location));
  }

  Label label_of(std::string_view message) const {
    Label label;
    each_field_of(message, [&](const Field& field) {
      if (field.number == number_of::key) label.key = text(field);
      if (field.number == number_of::text) label.text = text(field);
      if (field.number == number_of::number) label.number = static_cast<int64_t>(field.number_value());
      if (field.number == number_of::number_unit) label.unit = text(field);
    });
    return label;
  }

  void take_sample(std::string_view message) {
    Sample sample;
    std::vector<uint64_t> ids, values;
    each_field_of(message, [&](const Field& field) {
      if (field.number == number_of::location_id) append_numbers(field, ids);
      if (field.number == number_of::value) append_numbers(field, values);
      if (field.number == number_of::label) sample.labels.push_back(label_of(field.bytes_value()));
    });
    const size_t number = profile_.samples.size();
    if (values.size() != profile_.types.size())
      throw WireError(fmt::format("sample {} has {} values of {}", number, values.size(), profile_.types.size()));
    for (const uint64_t id : ids) {
      const size_t index = index_of(location_ids_, id, "location");
      if (index == none) throw WireError(fmt::format("sample {} is at no location", number));
      sample.locations.push_back(static_cast<uint32_t>(index));
    }
    for (const uint64_t value : values) {
      sample.values.push_back(static_cast<int64_t>(value));
      if (sample.values.back() < 0) throw WireError(fmt::format("sample {} has a negative value", number));
    }
    profile_.samples.push_back(std::move(sample));
  }

  const std::string_view message_;
  std::vector<std::string_view> texts_;
  Ids mapping_ids_, function_ids_, location_ids_;
  Profile profile_;
};

class Encoder {
 public:
  std::string encode(const Profile& profile) {
    index_of_text("");
    for (const ValueType& each : profile.types)
      all_.element(number_of::sample_type, value_type(each));
    for (const Sample& each : profile.samples)
      all_.element(number_of::sample, sample(each));
    for (size_t i = 0; i < profile.mappings.size(); ++i)
      all_.element(number_of::mapping, mapping(i + 1, profile.mappings[i]));
    for (size_t i = 0; i < profile.locations.size(); ++i)
      all_.element(number_of::location, location(i + 1, profile.locations[i]));
    for (size_t i = 0; i < profile.functions.size(); ++i)
      all_.element(number_of::function, function(i + 1, profile.functions[i]));
    all_.number(number_of::time_nanos, static_cast<uint64_t>(profile.time_nanos));
    all_.number(number_of::duration_nanos, static_cast<uint64_t>(profile.duration_nanos));
    all_.element(number_of::period_type, value_type(profile.period_type));
    all_.number(number_of::period, static_cast<uint64_t>(profile.period));
    std::vector<uint64_t> comments;
    for (const std::string& each : profile.comments)
      comments.push_back(index_of_text(each));
    all_.packed(number_of::comment, comments);
    all_.number(number_of::default_sample_type, index_of_text(profile.default_type));
    for (const std::string* each : texts_)
      all_.element(number_of::string_table, *each);
    return all_.message();
  }

 private:
  uint64_t index_of_text(const std::string& text) {
    const auto [place, is_new] = indices_.emplace(text, texts_.size());
    if (is_new) texts_.push_back(&place->first);
    return place->second;
  }

  std::string value_type(const ValueType& type) {
    return FieldWriter()
        .number(number_of::type, index_of_text(type.name))
        .number(number_of::unit, index_of_text(type.unit))
        .message();
  }

  std::string sample(const Sample& sample) {
    std::vector<uint64_t> ids, values;
    for (const uint32_t each : sample.locations)
      ids.push_back(uint64_t{each} + 1);
    for (const int64_t each : sample.values)
      values.push_back(static_cast<uint64_t>(each));
    FieldWriter writer;
    writer.packed(number_of::location_id, ids).packed(number_of::value, values);
    for (const Label& each : sample.labels)
      writer.element(number_of::label, FieldWriter()
                                           .number(number_of::key, index_of_text(each.key))
                                           .number(number_of::text, index_of_text(each.text))
                                           .number(number_of::number, static_cast<uint64_t>(each.number))
                                           .number(number_of::number_unit, index_of_text(each.unit))
                                           .message());
    return writer.message();
  }

  std::string mapping(uint64_t id, const Mapping& mapping) {
    FieldWriter writer;
    writer.number(number_of::mapping_id, id)
        .number(number_of::memory_start, mapping.start)
        .number(number_of::memory_limit, mapping.limit)
        .number(number_of::file_offset, mapping.offset)
        .number(number_of::filename, index_of_text(mapping.file))
        .number(number_of::build_id, index_of_text(mapping.build_id));
    for (const uint32_t field : {number_of::has_functions, number_of::has_filenames, number_of::has_line_numbers,
                                 number_of::has_inline_frames})
      writer.number(field, mapping.has_functions ? 1 : 0);
    return writer.message();
  }

  std::string location(uint64_t id, const Location& location) {
    FieldWriter writer;
    writer.number(number_of::own_location_id, id)
        .number(number_of::mapping_of, location.mapping == none ? 0 : location.mapping + 1)
        .number(number_of::address, location.address);
    for (const Line& each : location.lines)
      writer.element(number_of::line, FieldWriter()
                                          .number(number_of::function_of, each.function + 1)
                                          .number(number_of::line_number, static_cast<uint64_t>(each.line))
                                          .message());
    return writer.message();
  }

  std::string function(uint64_t id, const Function& function) {
    return FieldWriter()
        .number(number_of::function_id, id)
        .number(number_of::name, index_of_text(function.name))
        .number(number_of::system_name, index_of_text(function.system_name))
        .number(number_of::file, index_of_text(function.file))
        .message();
  }

  FieldWriter all_;
  std::unordered_map<std::string, uint64_t> indices_;
  std::vector<const std::string*> texts_;  // keys of indices_, which stay where they are
};

}  // namespace

Profile decoded(std::string_view message) {
  return Decoder(message).decode();
}

std::string encoded(const Profile& profile) {
  return Encoder().encode(profile);
}

}  // namespace sluice::cli::profile
