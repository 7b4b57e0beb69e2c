// JSON documents parsed into trees of objects, arrays and strings, edited, dumped as text and discarded, with the
// library that most C++ programs use (nlohmann-json). Open it for what a document costs in a server that speaks JSON.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common.hpp"
#include "json_documents.hpp"
#include "phases.hpp"

namespace {

using nlohmann::json;
using scenario::JsonDocuments;

constexpr std::uint64_t documents_in_round = 24;
constexpr std::uint32_t different_documents = 12;

struct Texts {
  explicit Texts(std::uint64_t seed)
      : fresh(seed, different_documents, JsonDocuments::State::fresh),
        edited(seed, different_documents, JsonDocuments::State::edited) {}
  JsonDocuments fresh, edited;
};

void edit(json& document) {
  for (json& record : document["records"]) {
    const auto id = record["id"].get<std::uint64_t>();
    record["address"]["city"] = scenario::new_city;
    if (scenario::loses_notes(id)) record.erase("notes");
    if (scenario::is_reviewed(id)) {
      json review = json::object();
      review["by"] = scenario::reviewer;
      review["record"] = id;
      record["reviewed"] = std::move(review);
    }
    record["tags"].push_back(scenario::new_tag);
    record["visits"] = record["visits"].get<std::uint64_t>() + 1;
  }
}

enum Phase : std::size_t { preparation, parsing, editing, dumping, checking, discarding };

/// Returns whether every document came out as it should.
bool work(const scenario::Arguments& arguments, const Texts& texts, scenario::PhaseClock& clock, std::uint64_t worker) {
  const scenario::Rounds rounds(arguments, worker, documents_in_round);
  std::vector<json> documents;
  std::vector<std::string> dumps;
  bool is_right = true;
  std::uint64_t first = worker;
  clock.end(preparation);
  for (std::uint64_t round = 0; round < rounds.count(); ++round) {
    const std::uint64_t count = rounds.operations(round);
    for (std::uint64_t i = 0; i < count; ++i)
      documents.push_back(json::parse(texts.fresh[(first + i) % different_documents]));
    clock.end(parsing);
    for (json& document : documents)
      edit(document);
    clock.end(editing);
    for (const json& document : documents)
      dumps.push_back(document.dump());
    clock.end(dumping);
    for (std::uint64_t i = 0; i < count; ++i)
      is_right = is_right && dumps[i] == texts.edited[(first + i) % different_documents];
    clock.end(checking);
    documents.clear();
    dumps.clear();
    clock.end(discarding);
    first += count;
  }
  return is_right;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      scenario::parse_arguments(argc, argv, {.unit = "documents of 400 records", .ops = 240, .threads = 1});
  const Texts texts(arguments.seed);
  scenario::PhaseClock clock(arguments.threads);
  scenario::Report report("json");
  report.require(scenario::are_all_right(arguments.threads,
                                         [&](std::uint64_t worker) { return work(arguments, texts, clock, worker); }));
  const std::uint64_t records = arguments.ops * scenario::records_in_document;
  report.add("json_parse", records, clock.nanoseconds(parsing));
  report.add("json_edit", records, clock.nanoseconds(editing));
  report.add("json_dump", records, clock.nanoseconds(dumping));
  report.add("json_discard", records, clock.nanoseconds(discarding));
  return report.finish(arguments);
}
