// The statistics as JSON: what statistics.def lists, in its order. Open it together with README.md in this folder,
// which documents every field, and raise json_schema_version when a field changes its meaning or goes away.
#include "stats/figures.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stats/utf8.hpp"
#include "stats/writers.hpp"

namespace sluice::stats {
namespace {

// A JSON string. Bytes that are not UTF-8 become \u00XX, so that the output is always valid JSON.
void write_string(Print& out, std::string_view text) noexcept {
  out.character('"');
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const unsigned char first = static_cast<unsigned char>(text.front());
    if (length == 0 || first < 0x20 || first == 0x7f)
      out.text("\\u").hexadecimal(first, 4);
    else if (first == '"' || first == '\\')
      out.character('\\').character(text.front());
    else
      out.text({text.data(), length});
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out.character('"');
}

// The members of one JSON object, with the commas between them.
class Members {
 public:
  Members(Print& out, std::string_view separator) noexcept : out_(out), separator_(separator) {}

  Print& name(std::string_view name) noexcept {
    if (!first_) out_.text(separator_);
    first_ = false;
    return out_.character('"').text(name).text("\": ");
  }
  Members& number(std::string_view key, uint64_t value) noexcept {
    name(key).decimal(value);
    return *this;
  }
  Members& boolean(std::string_view key, bool value) noexcept {
    name(key).text(value ? "true" : "false");
    return *this;
  }
  Members& string(std::string_view key, std::string_view value) noexcept {
    write_string(name(key), value);
    return *this;
  }

 private:
  Print& out_;
  const std::string_view separator_;
  bool first_ = true;
};

template <typename Figures, size_t count>
void add(Members& members, const Figure<Figures> (&table)[count], const Figures& figures) noexcept {
  for (const Figure<Figures>& each : table)
    members.number(each.name, figures.*each.member);
}

template <typename Figures, size_t count>
void write_section(Print& out, const Figure<Figures> (&table)[count], const Figures& figures) noexcept {
  out.text("{");
  Members members(out, ", ");
  add(members, table, figures);
  out.text("}");
}

void write_class(Print& out, const ClassFigures& f) noexcept {
  out.text("{");
  Members members(out, ", ");
#define SLUICE_FIGURE_CLASS(name, ...) members.number(#name, f.name);
#define SLUICE_FIGURE_CLASS_DERIVED(name, value, ...) members.number(#name, value);
#include "os/statistics.def"
  out.text("}");
}

void write_classes(Print& out, const Snapshot& snapshot) noexcept {
  out.text("[");
  bool first = true;
  for (const ClassFigures& figures : snapshot.classes) {
    if (!is_used(figures)) continue;
    out.text(first ? "\n    " : ",\n    ");
    first = false;
    write_class(out, figures);
  }
  out.text(first ? "]" : "\n  ]");
}

}  // namespace

void write_json(Print& out, const Snapshot& s, const ProcessInfo& process) noexcept {
  out.text("{\n  ");
  Members members(out, ",\n  ");
  members.string("schema", "sluice-stats")
      .number("schema_version", json_schema_version)
      .string("version", process.version)
      .number("pid", process.pid)
      .string("program", process.program != nullptr ? process.program : "")
      .boolean("counting", s.counting);
  add(members, total_figures, s);
  write_section(members.name("resident"), resident_figures, s.resident);
  write_classes(members.name("classes"), s);
  write_section(members.name("large"), large_figures, s.large);
  write_section(members.name("arena"), arena_figures, s.arena);
  write_section(members.name("threads"), thread_figures, s.threads);
  write_section(members.name("os"), os_figures, s.os);
  write_section(members.name("foreign"), foreign_figures, s.foreign);
  out.text("\n}\n");
}

}  // namespace sluice::stats
