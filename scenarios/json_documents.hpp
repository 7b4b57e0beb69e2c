// JSON texts of customers' records, as they are before and after an edit. Open it to change what the json scenario
// parses.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

#include "common.hpp"
#include "texts.hpp"

namespace scenario {

constexpr std::uint32_t records_in_document = 400;

/// What the edit puts into a record.
constexpr std::string_view new_tag = "seen-by-support";
constexpr std::string_view new_city = "Newcastle upon Tyne, Northumberland";
constexpr std::string_view reviewer = "second-line-support@example.org";
inline bool loses_notes(std::uint64_t id) {
  return id % 2 == 0;
}
inline bool is_reviewed(std::uint64_t id) {
  return id % 3 == 0;
}

/// Several documents, one behind another. They have the names of each object in order and nothing between the tokens,
/// so that what is parsed and dumped again must be the same letter by letter.
class JsonDocuments {
 public:
  enum class State { fresh, edited };

  JsonDocuments(std::uint64_t seed, std::uint32_t documents, State state)
      : state_(state), letters_(std::size_t{documents} * longest_document), ends_(documents + 1) {
    Random random(seed);
    for (std::uint32_t document = 0; document < documents; ++document) {
      write_document(document, random);
      ends_[document + 1] = length_;
    }
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(ends_.length() - 1); }
  std::string_view operator[](std::size_t document) const {
    return {&letters_[0] + ends_[document], ends_[document + 1] - ends_[document]};
  }

 private:
  static constexpr std::size_t longest_record = 768;
  static constexpr std::size_t longest_document = (records_in_document + 1) * longest_record;

  void add(std::string_view piece) {
    std::memcpy(&letters_[length_], piece.data(), piece.size());
    length_ += piece.size();
  }
  void add(std::uint64_t number) {
    char* const place = &letters_[length_];
    length_ += static_cast<std::size_t>(std::to_chars(place, place + 20, number).ptr - place);
  }
  void add_text(std::string_view text) {
    add("\"");
    add(text);
    add("\"");
  }

  void write_document(std::uint64_t number, Random& random) {
    add(R"({"number":)");
    add(number);
    add(R"(,"records":[)");
    for (std::uint32_t i = 0; i < records_in_document; ++i) {
      if (i != 0) add(",");
      write_record(number * records_in_document + i, Random(random.next()));
    }
    add(R"(],"source":"https://example.org/customers?page=)");
    add(number);
    add("\"}");
  }

  /// What is drawn does not depend on the state.
  void write_record(std::uint64_t id, Random random) {
    const bool is_edited = state_ == State::edited;
    add(random.below(4) == 0 ? R"({"active":false)" : R"({"active":true)");
    add(R"(,"address":{"city":)");
    const std::string_view city = text_piece(random.next(), random.between(4, 20));
    add_text(is_edited ? new_city : city);
    add(R"(,"street":)");
    add_text(text_piece(random.next(), random.between(8, 40)));
    add(R"(,"zip":)");
    add_text(random.below(2) == 0 ? "90210" : "SW1A 1AA");
    add(R"(},"balance":)");
    if (random.below(8) == 0) add("-");
    add(std::uint64_t{random.between(1, 99'999)});
    add(random.below(2) == 0 ? ".25" : ".5");
    add(R"(,"email":"customer.)");
    add(id);
    add(R"(@example.org","history":[)");
    for (std::uint32_t left = random.below(13); left != 0; --left) {
      add(std::uint64_t{random.below(1'000'000)});
      if (left != 1) add(",");
    }
    add(R"(],"id":)");
    add(id);
    write_name_and_notes(id, random, is_edited);
    write_tags(random, is_edited);
    add(R"(,"visits":)");
    add(random.below(5'000) + std::uint64_t{is_edited});
    add("}");
  }

  void write_name_and_notes(std::uint64_t id, Random& random, bool is_edited) {
    add(R"(,"name":)");
    add_text(random.below(3) == 0 ? "Zoë \\\"Z\\\" Müller-Lüdenscheidt" : "Jo Ash");
    const std::string_view note = text_piece(random.next(), random.between(24, longest_text));
    if (!(is_edited && loses_notes(id))) {
      add(R"(,"notes":")");
      add(note);
      add(R"(\n","parent":null)");
    } else {
      add(R"(,"parent":null)");
    }
    if (is_edited && is_reviewed(id)) {
      add(R"(,"reviewed":{"by":)");
      add_text(reviewer);
      add(R"(,"record":)");
      add(id);
      add("}");
    }
  }

  void write_tags(Random& random, bool is_edited) {
    static constexpr std::string_view tags[] = {"new", "vip", "newsletter", "returns-often-goods", "pays-by-invoice"};
    add(R"(,"tags":[)");
    const std::uint32_t count = random.between(1, 5);
    for (std::uint32_t i = 0; i < count; ++i) {
      if (i != 0) add(",");
      add_text(tags[random.below(5)]);
    }
    if (is_edited) {
      add(",");
      add_text(new_tag);
    }
    add("]");
  }

  State state_;
  Table<char> letters_;
  Table<std::size_t> ends_;
  std::size_t length_ = 0;
};

}  // namespace scenario
