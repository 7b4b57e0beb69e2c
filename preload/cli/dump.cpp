// Reading a statistics dump: the file, its JSON, and every field that the schema has. Open it when a dump is
// refused.
#include "dump.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/size_class.hpp"
#include "command.hpp"
#include "stats/figures.hpp"
#include "stats/writers.hpp"

namespace sluice::cli {
namespace {

using nlohmann::json;

std::string read_text(const std::string& source, const std::string& file) {
  const auto fail = [&] {
    throw CommandError(exit_usage, fmt::format("{}: cannot be read: {}", source, std::strerror(errno)));
  };
  struct Close {
    void operator()(std::FILE* stream) const {
      if (stream != stdin) std::fclose(stream);
    }
  };
  const std::unique_ptr<std::FILE, Close> stream(file == "-" ? stdin : std::fopen(file.c_str(), "rbe"));
  if (!stream) fail();
  std::string text;
  char part[4096];
  while (const size_t got = std::fread(part, 1, sizeof part, stream.get()))
    text.append(part, got);
  if (std::ferror(stream.get()) != 0) fail();
  return text;
}

// One JSON object of the dump; a field that is missing or of another kind is an error that names it.
class Reader {
 public:
  Reader(const std::string& source, std::string path, const json& object)
      : source_(source), path_(std::move(path)), object_(object) {
    if (!object_.is_object()) fail(path_.empty() ? "the dump" : path_, "is not an object");
  }

  const json& member(const char* name) const {
    const auto found = object_.find(name);
    if (found == object_.end()) fail(path_ + name, "is missing");
    return *found;
  }

  uint64_t number(const char* name) const {
    const json& value = member(name);
    if (!value.is_number_unsigned()) fail(path_ + name, "is not a non-negative integer");
    return value.get<uint64_t>();
  }

  std::string text(const char* name) const {
    const json& value = member(name);
    if (!value.is_string()) fail(path_ + name, "is not a string");
    return value.get<std::string>();
  }

  bool boolean(const char* name) const {
    const json& value = member(name);
    if (!value.is_boolean()) fail(path_ + name, "is not true or false");
    return value.get<bool>();
  }

  template <typename Figures, size_t count>
  void figures(const stats::Figure<Figures> (&table)[count], Figures& into) const {
    for (const stats::Figure<Figures>& each : table)
      into.*each.member = number(each.name);
  }

  // As figures(); dumps of earlier versions of the library may lack some, which are 0 then.
  template <typename Figures, size_t count>
  void known_figures(const stats::Figure<Figures> (&table)[count], Figures& into) const {
    for (const stats::Figure<Figures>& each : table)
      if (object_.contains(each.name)) into.*each.member = number(each.name);
  }

  template <typename Figures, size_t count>
  void section(const char* name, const stats::Figure<Figures> (&table)[count], Figures& into) const {
    Reader(source_, path_ + name + ".", member(name)).figures(table, into);
  }

  [[noreturn]] void fail(const std::string& what, std::string_view problem) const {
    throw CommandError(exit_usage, fmt::format("{}: not a statistics dump: {} {}", source_, what, problem));
  }

 private:
  const std::string& source_;
  const std::string path_;
  const json& object_;
};

// The class of blocks of a size; of one that only other versions have, the nearest. 0: no version has such.
unsigned class_in_dump(uint64_t block_size) {
  if (block_size == 0 || block_size > max_small_size || block_size % min_alignment != 0) return 0;
  const unsigned k = first_class_of(block_size);
  return k > 1 && block_size - class_sizes[k - 1] < class_sizes[k] - block_size ? k - 1 : k;
}

void read_classes(const Reader& dump, const std::string& source, stats::Snapshot& snapshot) {
  const json& classes = dump.member("classes");
  if (!classes.is_array()) dump.fail("classes", "is not an array");
  size_t index = 0;
  for (const json& element : classes) {
    const std::string path = fmt::format("classes[{}].", index++);
    const Reader reader(source, path, element);
    const uint64_t block_size = reader.number("block_size");
    const unsigned number = class_in_dump(block_size);
    if (number == 0) dump.fail(path + "block_size", "is no size class");
    stats::ClassFigures& figures = snapshot.classes[number];
    if (figures.block_size != 0) dump.fail(path + "block_size", "occurs twice");
    figures.block_size = static_cast<uint32_t>(block_size);
    reader.figures(stats::class_figures, figures);
  }
}

json parse(const std::string& source, const std::string& text) {
  if (text.empty()) throw CommandError(exit_usage, fmt::format("{}: is empty", source));
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    throw CommandError(exit_usage, fmt::format("{}: not JSON: error at byte {}", source, error.byte));
  } catch (const json::exception&) {  // out_of_range, the only other one
    throw CommandError(exit_usage, fmt::format("{}: holds a number that is too large", source));
  }
}

}  // namespace

Dump read_dump(const std::string& file) {
  Dump dump;
  dump.source = file == "-" ? "standard input" : file;
  const json document = parse(dump.source, read_text(dump.source, file));
  const Reader reader(dump.source, "", document);
  if (reader.text("schema") != "sluice-stats") reader.fail("schema", "is not sluice-stats");
  if (const uint64_t version = reader.number("schema_version"); version != stats::json_schema_version)
    throw CommandError(exit_usage, fmt::format("{}: schema_version {} is not supported, only {}", dump.source, version,
                                               stats::json_schema_version));
  dump.version = reader.text("version");
  dump.pid = reader.number("pid");
  dump.program = reader.text("program");

  stats::Snapshot& snapshot = dump.snapshot;
  snapshot.counting = reader.boolean("counting");
  reader.figures(stats::total_figures, snapshot);
  if (document.contains("resident"))  // not in dumps of before it was told
    Reader(dump.source, "resident.", reader.member("resident"))
        .known_figures(stats::resident_figures, snapshot.resident);
  read_classes(reader, dump.source, snapshot);
  reader.section("large", stats::large_figures, snapshot.large);
  Reader(dump.source, "arena.", reader.member("arena")).known_figures(stats::arena_figures, snapshot.arena);
  reader.section("threads", stats::thread_figures, snapshot.threads);
  reader.section("os", stats::os_figures, snapshot.os);
  Reader(dump.source, "foreign.", reader.member("foreign")).known_figures(stats::foreign_figures, snapshot.foreign);
  return dump;
}

}  // namespace sluice::cli
