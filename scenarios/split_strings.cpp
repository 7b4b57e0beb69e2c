// Lines of a server's log split into their fields, which are strings in a vector. Open it for what containers with room
// inside gain where a function fills a vector of strings that it is given.
#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

#include "common.hpp"
#include "memory.hpp"
#include "sluice/inline_string.hpp"
#include "sluice/inline_vector.hpp"
#include "sluice/split.hpp"
#include "texts.hpp"

namespace {

constexpr std::uint32_t line_count = 8'192;
constexpr std::uint32_t field_count = 10;
constexpr std::uint32_t longest_line = 256;
constexpr std::uint32_t longest_path = 56;

/// What sluice::split does, for a vector of the standard library: the elements that there are get new texts, and keep
/// the memory that they have.
template <class Fields>
void split_into(Fields& fields, std::string_view line) {
  std::size_t pieces = 0;
  for (;;) {
    const std::size_t end = line.find(' ');
    const std::string_view piece = line.substr(0, end);
    if (pieces == fields.size()) {
      fields.emplace_back(piece);
    } else {
      fields[pieces].assign(piece);
    }
    ++pieces;
    if (end == std::string_view::npos) break;
    line.remove_prefix(end + 1);
  }
  fields.resize(pieces);
}

struct Plain : scenario::AlwaysInEffect<Plain> {
  static constexpr const char* name = "plain";
  using Fields = std::vector<std::string>;

  static void split(std::string_view line, Fields& fields) { split_into(fields, line); }
  template <class Body>
  static void with_fresh(Body&& body) {
    Fields fields;
    body(fields);
  }

  Fields reused;
};

/// Room for as many fields as a line has, and for the longest of them but some paths; what is filled and read is the
/// base.
struct Inline : scenario::AlwaysInEffect<Inline> {
  static constexpr const char* name = "inline_vector";
  using Field = sluice::inline_string<24>;
  using Fields = sluice::vector_base<Field>;

  static void split(std::string_view line, Fields& fields) { sluice::split(line, ' ', fields); }
  template <class Body>
  static void with_fresh(Body&& body) {
    sluice::inline_vector<Field, 12> fields;
    body(fields);
  }

  sluice::inline_vector<Field, 12> reused;
};

/// Fresh vectors and their strings lie in a buffer on the stack, those that are used again come from a pool.
struct Pmr : scenario::AlwaysInEffect<Pmr> {
  static constexpr const char* name = "pmr";
  using Fields = std::pmr::vector<std::pmr::string>;

  static void split(std::string_view line, Fields& fields) { split_into(fields, line); }
  template <class Body>
  static void with_fresh(Body&& body) {
    std::byte buffer[4096];
    std::pmr::monotonic_buffer_resource resource(buffer, sizeof buffer);
    Fields fields(&resource);
    body(fields);
  }

  std::pmr::unsynchronized_pool_resource pool;
  Fields reused{&pool};
};

/// The lines of the log, one behind another, and what reading each must give.
class Log {
 public:
  explicit Log(std::uint64_t seed) : text_(std::size_t{line_count} * longest_line), lines_(line_count) {
    scenario::Random random(seed);
    std::size_t used = 0;
    for (std::uint32_t i = 0; i < line_count; ++i) {
      const std::size_t length = write_line(&text_[used], random);
      lines_[i] = {static_cast<std::uint32_t>(used), static_cast<std::uint32_t>(length), 0};
      lines_[i].digest = digest_of(line(i));
      used += length;
    }
  }

  std::string_view line(std::uint64_t number) const {
    const Line& line = lines_[number % line_count];
    return {&text_[line.start], line.length};
  }
  std::uint32_t digest(std::uint64_t number) const { return lines_[number % line_count].digest; }

  /// What a field adds to the digest of its line, as the field of that number.
  static std::uint32_t digest_of_field(std::string_view field, std::uint32_t number) {
    const auto first = static_cast<unsigned char>(field.front());
    const auto last = static_cast<unsigned char>(field.back());
    return (static_cast<std::uint32_t>(field.size()) << 16 | static_cast<std::uint32_t>(first << 8) | last) *
           (number + 1);
  }

 private:
  struct Line {
    std::uint32_t start, length, digest;
  };

  /// Ten fields: client, user, time, method, path, protocol, status, bytes, microseconds, agent.
  static std::size_t write_line(char* place, scenario::Random& random) {
    static constexpr const char* users[] = {"-", "-", "-", "maria", "service-account-7"};
    static constexpr const char* methods[] = {"GET", "GET", "GET", "POST", "DELETE"};
    static constexpr const char* agents[] = {"curl/8.5.0", "Firefox/132.0", "health-check", "storage-replicator/2.11"};
    char path[longest_path + 1];
    const std::uint32_t path_length = random.below(4) == 0 ? random.between(25, longest_path) : random.between(2, 24);
    const std::string_view words = scenario::text_piece(random.next(), path_length);
    for (std::uint32_t i = 0; i < path_length; ++i)
      path[i] = words[i] == ' ' || i == 0 ? '/' : words[i];
    path[path_length] = '\0';
    const int length = std::snprintf(
        place, longest_line, "10.%u.%u.%u %s 2026-%02u-%02uT%02u:%02u:%02u.%03uZ %s %s HTTP/1.1 %u %u %u %s",
        random.below(256), random.below(256), random.below(256), users[random.below(5)], random.between(1, 12),
        random.between(1, 28), random.below(24), random.below(60), random.below(60), random.below(1000),
        methods[random.below(5)], path, 200 + random.below(4) * 100, random.below(1'000'000), random.below(100'000),
        agents[random.below(4)]);
    return static_cast<std::size_t>(length);
  }

  static std::uint32_t digest_of(std::string_view line) {
    std::uint32_t digest = 0;
    for (std::uint32_t number = 0; number < field_count; ++number) {
      const std::size_t end = line.find(' ');
      digest += digest_of_field(line.substr(0, end), number);
      line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
    }
    return digest;
  }

  scenario::Table<char> text_;
  scenario::Table<Line> lines_;
};

template <class Fields>
[[gnu::noinline]] std::uint32_t read_fields(const Fields& fields) {
  std::uint32_t digest = 0;
  std::uint32_t number = 0;
  for (const auto& field : fields)
    digest += Log::digest_of_field(field, number++);
  return digest;
}

template <class Memory>
[[gnu::noinline]] void split(std::string_view line, typename Memory::Fields& fields) {
  Memory::split(line, fields);
}

template <class Memory>
void run(Memory& memory, const scenario::Arguments& arguments, scenario::Report& report) {
  const Log log(arguments.seed);
  std::uint32_t damage = 0;
  report.measure("split_fresh", arguments.ops, [&] {
    for (std::uint64_t i = 0; i < arguments.ops; ++i) {
      Memory::with_fresh([&](typename Memory::Fields& fields) {
        split<Memory>(log.line(i), fields);
        damage |= read_fields(fields) ^ log.digest(i);
      });
    }
  });
  report.measure("split_reused", arguments.ops, [&] {
    for (std::uint64_t i = 0; i < arguments.ops; ++i) {
      split<Memory>(log.line(i), memory.reused);
      damage |= read_fields(memory.reused) ^ log.digest(i);
    }
  });
  report.require(damage == 0);
}

}  // namespace

int main(int argc, char** argv) {
  scenario::Choice memory("--memory", "plain|inline_vector|pmr");
  const auto arguments = scenario::parse_arguments(argc, argv, "lines", 300'000, 1, {&memory});
  scenario::Report report("split_strings");
  scenario::with_memory<Plain, Inline, Pmr>(memory, report, [&](auto& kind) { run(kind, arguments, report); });
  return report.finish(arguments);
}
