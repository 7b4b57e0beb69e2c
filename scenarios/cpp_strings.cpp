// Records put into words with std::ostringstream, cut into fields, indexed by text and sorted into a report: what C++
// programs do with std::string when nobody counts allocations. Open it for that.
#include <algorithm>
#include <iomanip>
#include <map>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "common.hpp"
#include "hash.hpp"
#include "phases.hpp"
#include "texts.hpp"

namespace {

constexpr std::uint64_t records_in_round = 16'000;
constexpr std::size_t longest_line = 320;
constexpr char separator = ';';

/// What a line is made of.
struct Record {
  Record(std::uint64_t seed, std::uint64_t record) : number(record) {
    static constexpr std::string_view first_names[] = {"Ada", "Bartholomew", "Chimamanda", "Di", "Ekaterina", "Fritz"};
    static constexpr std::string_view last_names[] = {"Ng", "Okonkwo", "Featherstonehaugh", "Smith", "de la Cruz"};
    static constexpr std::string_view domains[] = {"example.org", "mail.example.com", "post.example.net"};
    scenario::Random random(seed + record);
    first_name = first_names[random.below(std::size(first_names))];
    last_name = last_names[random.below(std::size(last_names))];
    domain = domains[random.below(std::size(domains))];
    street = scenario::text_piece(random.next(), random.between(10, 36));
    remark = scenario::text_piece(random.next(), random.between(0, scenario::longest_text));
    cents = random.below(10'000'000);
  }

  std::uint64_t number;
  std::string_view first_name, last_name, domain, street, remark;
  std::uint32_t cents;
};

std::string mail_address(const Record& record) {
  return std::string(record.first_name) + "." + std::string(record.last_name) + "." + std::to_string(record.number) +
         "@" + std::string(record.domain);
}

std::string line_of(const Record& record) {
  std::ostringstream out;
  out << record.last_name << ", " << record.first_name << separator << mail_address(record) << separator
      << record.street << separator << std::setw(8) << std::setfill('0') << record.number << separator << std::fixed
      << std::setprecision(2) << record.cents / 100.0 << separator << std::hex << record.cents << separator
      << record.remark;
  return out.str();
}

/// Writes the same line without any string or stream, and returns its length.
std::size_t write_line(char* place, const Record& record) {
  const auto width = [](std::string_view text) { return static_cast<int>(text.size()); };
  const auto number = static_cast<unsigned long long>(record.number);
  const int length = std::snprintf(
      place, longest_line, "%.*s, %.*s;%.*s.%.*s.%llu@%.*s;%.*s;%08llu;%u.%02u;%x;%.*s", width(record.last_name),
      record.last_name.data(), width(record.first_name), record.first_name.data(), width(record.first_name),
      record.first_name.data(), width(record.last_name), record.last_name.data(), number, width(record.domain),
      record.domain.data(), width(record.street), record.street.data(), number, record.cents / 100, record.cents % 100,
      record.cents, width(record.remark), record.remark.data());
  return static_cast<std::size_t>(length);
}

/// Calls `body` with each field of a line.
template <class Body>
void for_each_field(std::string_view line, Body&& body) {
  for (;;) {
    const std::size_t end = line.find(separator);
    body(line.substr(0, end));
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
  }
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  for (std::size_t start = 0;;) {
    const std::size_t end = line.find(separator, start);
    fields.push_back(line.substr(start, end == std::string::npos ? end : end - start));
    if (end == std::string::npos) return fields;
    start = end + 1;
  }
}

/// What the texts of a round amount to, in whatever order they are met.
struct Digest {
  std::uint64_t lines = 0, words = 0, groups = 0;

  bool operator==(const Digest& other) const {
    return lines == other.lines && words == other.words && groups == other.groups;
  }
};

Digest expected_digest(std::uint64_t seed, std::uint64_t first, std::uint64_t count) {
  Digest digest;
  char place[longest_line];
  for (std::uint64_t number = first; number < first + count; ++number) {
    const std::string_view line(place, write_line(place, Record(seed, number)));
    digest.lines += scenario::hash_of(line);
    std::string_view name;
    std::size_t field_number = 0;
    for_each_field(line, [&](std::string_view field) {
      digest.words += scenario::hash_of(field);
      if (field_number == 0) name = field;
      if (field_number == 1) digest.groups += scenario::mixed(scenario::hash_of(name), scenario::hash_of(field));
      ++field_number;
    });
  }
  return digest;
}

/// How often each field occurs, and the mail addresses of each name.
class Index {
 public:
  void add(std::vector<std::string> fields) {
    for (const std::string& field : fields)
      ++counts_[field];
    addresses_[fields[0]].push_back(std::move(fields[1]));
  }

  void add_to(Digest& digest) const {
    for (const auto& [field, count] : counts_)
      digest.words += count * scenario::hash_of(field);
    for (const auto& [name, addresses] : addresses_) {
      for (const std::string& address : addresses)
        digest.groups += scenario::mixed(scenario::hash_of(name), scenario::hash_of(address));
    }
  }

 private:
  std::unordered_map<std::string, std::uint64_t> counts_;
  std::map<std::string, std::vector<std::string>> addresses_;
};

/// The lines in order, each with a mark before it, as one text.
std::string report_of(std::vector<std::string> lines) {
  std::sort(lines.begin(), lines.end());
  std::string report;
  for (const std::string& line : lines)
    report += "* " + line + "\n";
  return report;
}

/// Adds the report's lines; false when it is not in order.
bool add_report(std::string_view report, Digest& digest) {
  constexpr std::size_t mark = 2;
  std::string_view last;
  while (!report.empty()) {
    const std::size_t end = report.find('\n');
    if (end == std::string_view::npos || end < mark) return false;
    const std::string_view line = report.substr(mark, end - mark);
    if (line < last) return false;
    digest.lines += scenario::hash_of(line);
    last = line;
    report.remove_prefix(end + 1);
  }
  return true;
}

enum Phase : std::size_t { preparation, formatting, indexing, reporting, checking, discarding };

/// Returns whether all texts came out as they should.
bool work(const scenario::Arguments& arguments, scenario::PhaseClock& clock, std::uint64_t worker) {
  const scenario::Rounds rounds(arguments, worker, records_in_round);
  const std::uint64_t seed = scenario::Random(scenario::seed_of(arguments, worker)).next();
  std::uint64_t first = 0;
  bool is_right = true;
  clock.end(preparation);
  for (std::uint64_t round = 0; round < rounds.count(); ++round) {
    const std::uint64_t count = rounds.operations(round);
    std::vector<std::string> lines;
    for (std::uint64_t number = first; number < first + count; ++number)
      lines.push_back(line_of(Record(seed, number)));
    clock.end(formatting);
    Index index;
    for (const std::string& line : lines)
      index.add(fields_of(line));
    clock.end(indexing);
    std::string report = report_of(lines);
    clock.end(reporting);
    Digest digest;
    index.add_to(digest);
    is_right = add_report(report, digest) && digest == expected_digest(seed, first, count) && is_right;
    clock.end(checking);
    lines = {};
    index = {};
    report = {};
    clock.end(discarding);
    first += count;
  }
  return is_right;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = scenario::parse_arguments(argc, argv, {.unit = "records", .ops = 320'000, .threads = 1});
  scenario::PhaseClock clock(arguments.threads);
  scenario::Report report("cpp_strings");
  report.require(
      scenario::are_all_right(arguments.threads, [&](std::uint64_t worker) { return work(arguments, clock, worker); }));
  report.add("cpp_strings_format", arguments.ops, clock.nanoseconds(formatting));
  report.add("cpp_strings_index", arguments.ops, clock.nanoseconds(indexing));
  report.add("cpp_strings_report", arguments.ops, clock.nanoseconds(reporting));
  report.add("cpp_strings_discard", arguments.ops, clock.nanoseconds(discarding));
  return report.finish(arguments);
}
