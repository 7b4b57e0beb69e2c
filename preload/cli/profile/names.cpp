// Demangles names and takes them apart. Open it with names.hpp.
#include "names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <utility>

#include <cxxabi.h>

#if defined(SLUICE_LIBIBERTY)
#include <libiberty/demangle.h>
#endif

namespace sluice::cli::profile {
namespace {

// Demangling takes time and memory that grow faster than a name.
constexpr size_t longest_symbol = 4096;

struct Free {
  void operator()(char* text) const { std::free(text); }
};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// Names of Rust's first scheme are those of C++ with a hash at the end, and with letters that C++ has not written out.
bool has_hash(std::string_view name) {
  constexpr std::string_view mark = "::h";
  constexpr size_t digits = 16;
  if (name.size() < mark.size() + digits) return false;
  const std::string_view end = name.substr(name.size() - mark.size() - digits);
  return end.starts_with(mark) &&
         std::all_of(end.begin() + mark.size(), end.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

std::string without_hash(std::string name) {
  constexpr std::pair<std::string_view, std::string_view> letters[] = {
      {"$LT$", "<"},  {"$GT$", ">"},  {"$RF$", "&"},   {"$BP$", "*"},  {"$C$", ","},   {"$LP$", "("},  {"$RP$", ")"},
      {"$SP$", "@"},  {"$u20$", " "}, {"$u22$", "\""}, {"$u27$", "'"}, {"$u2b$", "+"}, {"$u3b$", ";"}, {"$u3d$", "="},
      {"$u5b$", "["}, {"$u5d$", "]"}, {"$u7b$", "{"},  {"$u7d$", "}"}, {"$u7e$", "~"}, {"..", "::"},   {"_<", "<"}};
  name.resize(name.rfind("::h"));
  for (const auto& [from, to] : letters)
    replace_all(name, from, to);
  return name;
}

bool starts_operator(std::string_view text) {
  constexpr std::string_view word = "operator";
  return text.starts_with(word) && text.size() > word.size() &&
         std::isalnum(static_cast<unsigned char>(text[word.size()])) == 0 && text[word.size()] != '_';
}

// Where the sign or the words of an operator end: "operator<<", "operator()", "operator new[]", "operator bool".
size_t end_of_operator(std::string_view text) {
  size_t at = std::string_view("operator").size();
  if (text.substr(at).starts_with("()")) return at + 2;
  if (text[at] == ' ') return std::min(text.find('(', at), text.size());
  while (at < text.size() && std::string_view("<>=!+-*/%^&|~,[]").find(text[at]) != std::string_view::npos)
    ++at;
  return at;
}

bool opens(char c) {
  return c == '<' || c == '(' || c == '[' || c == '{';
}
bool closes(char c) {
  return c == '>' || c == ')' || c == ']' || c == '}';
}

// Where the bracket that opens at `at` is closed; the end where it is not.
size_t end_of_bracket(std::string_view text, size_t at) {
  size_t depth = 0;
  for (; at < text.size(); ++at) {
    if (opens(text[at])) ++depth;
    const bool is_arrow = text[at] == '>' && at > 0 && text[at - 1] == '-';
    if (closes(text[at]) && !is_arrow && --depth == 0) return at + 1;
  }
  return text.size();
}

// A bracket that is a part of a name: no list of parameters.
bool is_part_of_name(std::string_view bracket) {
  constexpr std::string_view parts[] = {"(anonymous namespace)", "{lambda", "{closure", "[abi:", "{unnamed"};
  return std::any_of(std::begin(parts), std::end(parts),
                     [&](std::string_view each) { return bracket.starts_with(each); });
}

std::string lower(std::string_view text) {
  std::string all(text);
  std::transform(all.begin(), all.end(), all.begin(), [](unsigned char c) { return std::tolower(c); });
  return all;
}

// A part that the compiler has moved (.cold, .isra.0, .llvm.123) belongs to the same function.
std::string whole_function(const std::string& symbol) {
  return symbol.substr(0, symbol.find('.'));
}

// A name of Rust's second scheme, which compilers of 2026 use. As it is without libiberty.
std::string demangled_second_scheme(const std::string& symbol) {
#if defined(SLUICE_LIBIBERTY)
  const std::unique_ptr<char, Free> name(rust_demangle(whole_function(symbol).c_str(), DMGL_PARAMS));
  if (name != nullptr) return name.get();
#endif
  return symbol;
}

}  // namespace

std::string demangled(const std::string& symbol) {
  if (symbol.size() > longest_symbol) return symbol;
  if (symbol.starts_with("_R")) return demangled_second_scheme(symbol);
  if (!symbol.starts_with("_Z")) return symbol;
  int status = 0;
  const std::unique_ptr<char, Free> name(
      abi::__cxa_demangle(whole_function(symbol).c_str(), nullptr, nullptr, &status));
  std::unique_ptr<char, Free> whole;
  if (symbol.find('$') != std::string::npos || symbol.find("..") != std::string::npos)
    whole.reset(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status));
  const char* const best = whole ? whole.get() : name.get();
  if (best == nullptr) return symbol;
  return has_hash(best) ? without_hash(best) : std::string(best);
}

std::string short_name(std::string_view name) {
  std::string text;
  for (size_t at = 0; at < name.size();) {
    const std::string_view rest = name.substr(at);
    const bool is_start =
        at == 0 || (std::isalnum(static_cast<unsigned char>(name[at - 1])) == 0 && name[at - 1] != '_');
    if (is_start && starts_operator(rest)) {
      const size_t end = end_of_operator(rest);
      text += rest.substr(0, end);
      at += end;
    } else if (opens(name[at]) && at > 0 && name[at] == '<') {
      text += "<>";
      at = end_of_bracket(name, at);
    } else if (opens(name[at]) && (at == 0 || is_part_of_name(rest))) {
      const size_t end = end_of_bracket(name, at);
      text += rest.substr(0, end - at);
      at = end;
    } else if (name[at] == '(') {
      at = end_of_bracket(name, at);
      if (!name.substr(at).starts_with("::") && !name.substr(at).starts_with(" const::")) break;
      at = name.find("::", at);  // of a function inside of that one
    } else if (rest.starts_with(" <") && !text.empty()) {
      ++at;  // "operator<< <char>"
    } else if (name[at] == ' ') {
      text.clear();  // what it returns
      ++at;
    } else {
      text += name[at++];
    }
  }
  return text.empty() ? std::string(name) : text;
}

bool is_inside_allocator(std::string_view name) {
  constexpr std::string_view places[] = {
      "sluice::os::",    "sluice::sampling::", "sluice::heap::",     "sluice::profile::",
      "sluice::arena::", "sluice::front::",    "sluice::hardened::", "sluice::guarded::"};
  return std::any_of(std::begin(places), std::end(places),
                     [&](std::string_view each) { return name.starts_with(each); });
}

bool hands_memory_on(std::string_view name) {
  constexpr std::string_view places[] = {"std::",        "__gnu_cxx::", "alloc::", "core::", "hashbrown::",
                                         "<hashbrown::", "<alloc::",    "<core::", "<std::", "operator new",
                                         "__rust_",      "__rdl_",      "__rg_"};
  if (std::any_of(std::begin(places), std::end(places), [&](std::string_view each) { return name.starts_with(each); }))
    return true;
  constexpr std::string_view family[] = {"malloc", "calloc",    "realloc", "reallocarray",  "memalign",
                                         "zalloc", "strdup",    "strndup", "aligned_alloc", "memdup",
                                         "valloc", "vasprintf", "asprintf"};
  std::string word = lower(name);
  while (!word.empty() && (std::isdigit(static_cast<unsigned char>(word.back())) != 0 || word.back() == '_'))
    word.pop_back();
  for (const std::string_view suffix : {"_n", "_array", "_usable", "_internal"})
    if (word.ends_with(suffix)) word.resize(word.size() - suffix.size());
  return std::any_of(std::begin(family), std::end(family), [&](std::string_view each) { return word.ends_with(each); });
}

}  // namespace sluice::cli::profile
