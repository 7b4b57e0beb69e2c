// The log that the regex scenario searches, and a matcher without regular expressions that finds the same. Open it to
// change what the lines look like.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "common.hpp"
#include "texts.hpp"

namespace scenario {

/// What is asked of the log: lines of one level and one service. An empty word stands for any.
struct LogQuery {
  static constexpr std::string_view levels[] = {"", "DEBUG", "INFO", "WARN", "ERROR"};
  static constexpr std::string_view services[] = {"", "nginx", "postgres", "cron"};

  explicit LogQuery(std::uint64_t number)
      : level(levels[number % std::size(levels)]), service(services[number / 2 % std::size(services)]) {}

  std::string_view level, service;
};

/// A line, cut where it must be cut: no expression is needed since its form is known.
struct LogLine {
  explicit LogLine(std::string_view line) : text(line) {
    date = cut("T");
    cut("Z ");
    host = cut(" ");
    service = cut("[");
    cut("]: ");
    level = cut(" ");
    cut("id=");
    id = cut(" user=");
    user = cut("@");
    domain = cut(" path=");
    cut("took=");
    duration = rest_;
  }

  bool answers(const LogQuery& query) const {
    return (query.level.empty() || query.level == level) && (query.service.empty() || query.service == service);
  }

  /// What a query finds out about the line.
  std::string summary() const {
    std::string found;
    for (const std::string_view part : {date, host, user, domain, duration})
      found.append(part).append(" ");
    return found;
  }

  /// The line without its identifier and the name of its user.
  std::string redacted() const {
    std::string shown(text.substr(0, static_cast<std::size_t>(id.data() - text.data()) - 3));
    shown.append("<> user=<").append(domain).append(">");
    return shown.append(text.substr(static_cast<std::size_t>(domain.end() - text.begin())));
  }

  std::string_view text, date, host, service, level, id, user, domain, duration;

 private:
  /// Takes what precedes the mark, and the mark.
  std::string_view cut(std::string_view mark) {
    const std::size_t end = rest_.find(mark);
    const std::string_view piece = rest_.substr(0, end);
    rest_.remove_prefix(end + mark.size());
    return piece;
  }

  std::string_view rest_ = text;
};

/// The lines of the log, from the seed.
class Log {
 public:
  static constexpr std::uint32_t line_count = 4'096;

  explicit Log(std::uint64_t seed) : letters_(std::size_t{line_count} * longest_line), lengths_(line_count) {
    Random random(seed);
    for (std::uint32_t i = 0; i < line_count; ++i)
      lengths_[i] = write(&letters_[std::size_t{i} * longest_line], random);
  }

  std::string_view operator[](std::uint64_t number) const {
    const std::size_t line = number % line_count;
    return {&letters_[line * longest_line], lengths_[line]};
  }

 private:
  static constexpr std::uint32_t longest_line = 256;
  static constexpr std::uint32_t longest_path = 60;

  static std::uint32_t write(char* place, Random& random) {
    static constexpr const char* users[] = {"maria", "jo.ash", "service_account.7", "k"};
    static constexpr const char* domains[] = {"example.org", "mail.example.com", "internal.storage.example.net"};
    static constexpr const char* units[] = {"us", "ms", "s"};
    char path[longest_path + 1] = "/";
    const std::string_view words = text_piece(random.next(), random.between(4, longest_path - 1));
    for (std::size_t i = 0; i < words.size(); ++i)
      path[i + 1] = words[i] == ' ' ? '/' : words[i];
    // Statements of their own, since the order in which arguments are evaluated is the compiler's choice.
    int length = std::snprintf(place, longest_line, "2026-%02u-", random.between(1, 12));
    const auto add = [&](const char* format, auto value) {
      length += std::snprintf(place + length, longest_line - static_cast<std::size_t>(length), format, value);
    };
    add("%02uT", random.between(1, 28));
    add("%02u:", random.below(24));
    add("%02u:07.", random.below(60));
    add("%03uZ ", random.below(1000));
    add("web-%02u ", random.below(40));
    add("%s[", LogQuery::services[random.between(1, 3)].data());
    add("%u]: ", random.between(100, 40'000));
    add("%s request ", LogQuery::levels[random.between(1, 4)].data());
    add("id=%08x ", static_cast<std::uint32_t>(random.next()));
    add("user=%s@", users[random.below(4)]);
    add("%s ", domains[random.below(3)]);
    add("path=%s ", path);
    add("took=%u", random.between(1, 99'999));
    add("%s", units[random.below(3)]);
    return static_cast<std::uint32_t>(length);
  }

  Table<char> letters_;
  Table<std::uint32_t> lengths_;
};

}  // namespace scenario
