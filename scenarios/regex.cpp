// Queries to a log by regular expressions: each compiles four, searches a page of lines with three of them, and blots
// out names and identifiers with the last. Open it for what std::regex, which takes memory for every state and every
// match, costs where expressions come from users.
#include <iterator>
#include <locale>
#include <regex>
#include <string>
#include <vector>

#include "common.hpp"
#include "phases.hpp"
#include "regex_log.hpp"

namespace {

constexpr std::uint64_t queries_in_round = 16;
constexpr std::uint64_t lines_of_query = 48;
constexpr std::uint64_t expressions_of_query = 4;

/// The expressions of one query.
struct Expressions {
  explicit Expressions(const scenario::LogQuery& query)
      : head(R"(^(\d{4}-\d{2}-\d{2})T[\d:.]+Z (\S+) )" + group(query.service, R"(\w+)") + R"(\[\d+\]: )" +
             group(query.level, "DEBUG|INFO|WARN|ERROR") + " "),
        user(R"(\buser=([\w.]+)@([\w.]+))"),
        duration(R"(took=(\d+(us|ms|s))$)"),
        secrets(R"(id=[0-9a-f]{8}|[\w.]+@([\w.]+))") {}

  static std::string group(std::string_view word, std::string_view any) {
    std::string text("(");
    return text.append(word.empty() ? any : word).append(")");
  }

  std::regex head, user, duration, secrets;
};

/// Appends what is known of the line, if the query asks for it.
void search(const Expressions& expressions, std::string_view line, std::vector<std::string>& found) {
  const char* const end = line.data() + line.size();
  std::cmatch head;
  std::cmatch user;
  std::cmatch duration;
  if (!std::regex_search(line.data(), end, head, expressions.head)) return;
  if (!std::regex_search(head.suffix().first, end, user, expressions.user)) return;
  if (!std::regex_search(user.suffix().first, end, duration, expressions.duration)) return;
  found.push_back(head.str(1) + " " + head.str(2) + " " + user.str(1) + " " + user.str(2) + " " + duration.str(1) +
                  " ");
}

std::string redact(const Expressions& expressions, std::string_view line) {
  std::string shown;
  std::regex_replace(std::back_inserter(shown), line.data(), line.data() + line.size(), expressions.secrets, "<$1>");
  return shown;
}

enum Phase : std::size_t { preparation, compiling, searching, replacing, checking };

class Worker {
 public:
  Worker(const scenario::Arguments& arguments, const scenario::Log& log, std::uint64_t number)
      : rounds_(arguments, number, queries_in_round), log_(log), first_(scenario::seed_of(arguments, number)) {}

  /// Returns whether everything was found.
  bool work(scenario::PhaseClock& clock) {
    bool is_right = true;
    clock.end(preparation);
    for (std::uint64_t round = 0; round < rounds_.count(); ++round) {
      const std::uint64_t count = rounds_.operations(round);
      for (std::uint64_t i = 0; i < count; ++i)
        expressions_.emplace_back(scenario::LogQuery(first_ + i));
      clock.end(compiling);
      for_each_line(count, [&](std::uint64_t i, std::string_view line) { search(expressions_[i], line, found_); });
      clock.end(searching);
      for_each_line(count,
                    [&](std::uint64_t i, std::string_view line) { shown_.push_back(redact(expressions_[i], line)); });
      clock.end(replacing);
      is_right = is_right && has_found_all(count);
      found_.clear();
      shown_.clear();
      clock.end(checking);
      expressions_.clear();
      clock.end(compiling);
      first_ += count;
    }
    return is_right;
  }

 private:
  template <class Body>
  void for_each_line(std::uint64_t queries, Body&& body) const {
    for (std::uint64_t i = 0; i < queries; ++i) {
      for (std::uint64_t line = 0; line < lines_of_query; ++line)
        body(i, log_[(first_ + i) * lines_of_query + line]);
    }
  }

  bool has_found_all(std::uint64_t queries) const {
    std::size_t found = 0;
    std::size_t shown = 0;
    bool is_right = true;
    for_each_line(queries, [&](std::uint64_t i, std::string_view text) {
      const scenario::LogLine line(text);
      is_right = is_right && shown < shown_.size() && shown_[shown++] == line.redacted();
      if (line.answers(scenario::LogQuery(first_ + i)))
        is_right = is_right && found < found_.size() && found_[found++] == line.summary();
    });
    return is_right && found == found_.size() && shown == shown_.size();
  }

  const scenario::Rounds rounds_;
  const scenario::Log& log_;
  std::uint64_t first_;  // the number of the round's first query
  std::vector<Expressions> expressions_;
  std::vector<std::string> found_, shown_;
};

/// Makes the standard library fill the tables of its locale, which it does without regard to other threads.
void fill_locale() {
  const auto& letters = std::use_facet<std::ctype<char>>(std::locale());
  char narrow = letters.widen('a');
  letters.narrow(&narrow, &narrow + 1, '?', &narrow);
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = scenario::parse_arguments(
      argc, argv,
      {.unit = "queries, each of 4 expressions that are compiled and 48 lines", .ops = 1'000, .threads = 1});
  const scenario::Log log(arguments.seed);
  fill_locale();
  scenario::PhaseClock clock(arguments.threads);
  scenario::Report report("regex");
  report.require(scenario::are_all_right(
      arguments.threads, [&](std::uint64_t worker) { return Worker(arguments, log, worker).work(clock); }));
  const std::uint64_t lines = arguments.ops * lines_of_query;
  report.add("regex_compile", arguments.ops * expressions_of_query, clock.nanoseconds(compiling));
  report.add("regex_search", lines, clock.nanoseconds(searching));
  report.add("regex_replace", lines, clock.nanoseconds(replacing));
  return report.finish(arguments);
}
