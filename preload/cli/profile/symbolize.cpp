// Asks the files of a profile for the functions at its addresses. Open it with symbolize.hpp.
#include "symbolize.hpp"

#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "names.hpp"
#include "symbols.hpp"

namespace sluice::cli::profile {
namespace {

class Resolver {
 public:
  explicit Resolver(Profile& profile) : profile_(profile) {
    for (size_t i = 0; i < profile.functions.size(); ++i)
      functions_.emplace(key_of(profile.functions[i]), i);
    for (size_t i = 0; i < profile.mappings.size(); ++i)
      by_start_[profile.mappings[i].start] = i;
  }

  void resolve(Location& location) {
    if (location.mapping == none) location.mapping = mapping_at(location.address);
    if (location.mapping == none) return add(location, {fmt::format("{:#x}", location.address)});
    const Mapping& mapping = profile_.mappings[location.mapping];
    const ModuleSymbols& symbols = symbols_of(mapping);
    for (const Place& place : symbols.at(mapping, location.address))
      add(location, place);
    if (!location.lines.empty()) return;
    const std::string name = mapping.file.substr(mapping.file.rfind('/') + 1);
    const uint64_t address = symbols.begin_in_file(mapping, location.address);
    add(location, {fmt::format("{}+{:#x}", name.empty() ? "unknown" : name, address)});
  }

  std::vector<std::string> remarks() && { return std::move(remarks_); }

 private:
  using Key = std::tuple<std::string, std::string>;
  static Key key_of(const Function& function) { return {function.system_name, function.file}; }

  size_t mapping_at(uint64_t address) const {
    auto after = by_start_.upper_bound(address);
    if (after == by_start_.begin()) return none;
    const size_t index = std::prev(after)->second;
    return address < profile_.mappings[index].limit ? index : none;
  }

  const ModuleSymbols& symbols_of(const Mapping& mapping) {
    std::unique_ptr<ModuleSymbols>& symbols = modules_[{mapping.file, mapping.build_id}];
    if (!symbols) {
      symbols = std::make_unique<ModuleSymbols>(mapping);
      const bool is_file = mapping.file.starts_with('/');  // no "[vdso]"
      if (is_file && !symbols->problem().empty())
        remarks_.push_back(fmt::format("{}: no names of functions: {}", mapping.file, symbols->problem()));
    }
    return *symbols;
  }

  void add(Location& location, const Place& place) {
    Function function{demangled(place.symbol), place.symbol, place.file};
    if (function.name.empty()) function.name = "unknown";
    const auto [found, is_new] = functions_.emplace(key_of(function), profile_.functions.size());
    if (is_new) profile_.functions.push_back(std::move(function));
    location.lines.push_back({found->second, place.line});
  }

  Profile& profile_;
  std::map<Key, size_t> functions_;
  std::map<uint64_t, size_t> by_start_;
  std::map<Key, std::unique_ptr<ModuleSymbols>> modules_;  // by file and build id
  std::vector<std::string> remarks_;
};

}  // namespace

std::vector<std::string> symbolize(Profile& profile) {
  Resolver resolver(profile);
  for (Location& each : profile.locations)
    if (each.lines.empty()) resolver.resolve(each);
  for (Mapping& each : profile.mappings)
    each.has_functions = true;
  return std::move(resolver).remarks();
}

}  // namespace sluice::cli::profile
