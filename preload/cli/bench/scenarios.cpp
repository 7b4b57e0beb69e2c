// The table of scenarios. Open it to add a program or a variant of one.
#include "bench/scenarios.hpp"

#include <algorithm>
#include <utility>

#include "measure/names.hpp"

namespace bench {
namespace {

/// One program with one set of arguments, which runs once with each kind of memory that it offers.
struct Group {
  const char* name;
  const char* program;
  std::vector<std::string> arguments;
  std::vector<const char*> memories;
  const char* summary;
  const char* component = "";  // that one of the memories which is a component of the library
  unsigned least_threads = 0;  // that the program takes; 0: it takes no --threads
};

const std::vector<Group>& groups() {
  static const std::vector<Group> table = {
      {"pair", "pair", {}, {}, "one small block allocated and freed at once", "", 1},
      {"lifo", "lifo", {}, {}, "1,000 small blocks freed in reverse order", "", 1},
      {"fifo", "fifo", {}, {}, "1,000 small blocks freed in the order of their allocation", "", 1},
      {"fifo_large_window", "fifo_large_window", {}, {}, "a queue of 100,000 small blocks, the oldest replaced", "", 1},
      {"producer_consumer", "producer_consumer", {}, {}, "one thread allocates, another frees"},
      {"thread_churn",
       "thread_churn",
       {},
       {},
       "short threads with a few blocks each, one by one and several together",
       "",
       1},
      {"littered_heap",
       "littered_heap",
       {},
       {},
       "3,000,000 objects, 60 % freed at random, a list built among the holes"},
      {"larger", "larger", {}, {}, "buffers of 2 KiB to 256 KiB replaced at random, half of each written", "", 1},
      {"sizes", "sizes", {}, {}, "eight blocks of one size at a time, 1 KiB to 1 MiB", "", 1},
      {"bursts", "bursts", {}, {}, "a hundred blocks of one size taken, then freed, 2 KB to 60 KB", "", 1},
      {"matrix", "matrix", {}, {}, "columns of matrices added whose rows are blocks of 4 KB to 262 KB", "", 1},
      {"aligned",
       "aligned",
       {},
       {},
       "buffers of 128 KiB to 8 MiB at multiples of up to 2 MiB, replaced at random",
       "",
       1},
      {"realloc_growth", "realloc_growth", {}, {}, "64 arrays growing side by side by realloc", "", 1},
      {"churn", "churn", {}, {}, "100,000 blocks with sizes and lifetimes of real programs, replaced", "", 1},
      {"bleeding", "bleeding", {}, {}, "blocks replaced at random by threads that inherit them from ended ones", "", 1},
      {"fan_out", "fan", {"--shape", "out"}, {}, "one thread sends messages of mixed sizes to several", "", 2},
      {"fan_in", "fan", {"--shape", "in"}, {}, "several threads send messages of mixed sizes to one", "", 2},
      {"messages", "messages", {}, {}, "16 threads write messages of 128 B to 128 KiB and free those of others", "", 1},
      {"fragmentation",
       "fragmentation",
       {},
       {},
       "a heap filled, nine in ten blocks freed at random, filled with other sizes",
       "",
       1},
      {"holes", "holes", {}, {}, "all but every 20th of 300,000 blocks freed at random: what stays at rest"},
      {"holes_with_thread", "holes", {"--company", "asleep"}, {}, "the same in a program with a thread that sleeps"},
      {"idle_threads", "idle_threads", {}, {}, "64 threads take 8 MiB each, free all of it and sleep", "", 1},
      {"large_buffers",
       "large_buffers",
       {},
       {},
       "buffers of 256 KiB to 32 MiB written whole, replaced or grown",
       "",
       1},
      {"large_churn", "large_churn", {}, {}, "20 buffers of 5 to 25 MiB written whole, replaced at random", "", 1},
      {"key_value", "key_value", {}, {}, "a hash table of keys and values under popular and unpopular commands", "", 1},
      {"trees", "trees", {}, {}, "small ordered trees built, walked, torn down beside one that lasts", "", 1},
      {"json", "json", {}, {}, "JSON documents parsed, edited, dumped, discarded (nlohmann-json)", "", 1},
      {"regex", "regex", {}, {}, "expressions compiled, lines of a log searched and redacted (std::regex)", "", 1},
      {"sqlite", "sqlite", {}, {}, "in-memory SQL databases filled, queried, changed, closed (SQLite)", "", 1},
      {"cpp_strings", "cpp_strings", {}, {}, "records formatted, cut, indexed and sorted as std::string", "", 1},
      {"request",
       "request",
       {},
       {"plain", "scope", "frame", "monotonic"},
       "requests of 200 to 2,000 objects that end together"},
      {"document",
       "document",
       {},
       {"plain", "scope", "frame"},
       "a tree of 200,000 nodes with texts parsed, traversed, discarded"},
      {"document_littered",
       "document",
       {"--heap", "littered", "--ops", "5"},
       {"plain", "scope", "frame"},
       "the same, five times, on a heap of 3,000,000 objects with 60 % freed at random"},
      {"game_loop",
       "game_loop",
       {},
       {"plain", "scope", "frame"},
       "temporaries of a picture, levels loaded and unloaded, particles"},
      {"strings", "strings", {}, {"plain", "scope", "frame"}, "strings appended to, one at a time and eight in turns"},
      {"compiler",
       "compiler",
       {},
       {"plain", "scope", "noroute", "frame"},
       "phases full of temporaries, with long-lived symbols among them"},
      {"survivors", "survivors", {}, {"plain", "scope", "frame"}, "one of 1,000 objects survives: what it pins"},
      {"misuse_queue", "misuse_queue", {}, {"plain", "scope"}, "a queue wholly inside one scope"},
      {"misuse_doubling", "misuse_doubling", {}, {"plain", "scope"}, "vectors that double, wholly inside one scope"},
      {"particles",
       "particles",
       {},
       {"plain", "stack_pool", "pmr"},
       "thousands of short-lived particles begin, move and end",
       "stack_pool"},
      {"sprites",
       "sprites",
       {},
       {"plain", "index_pool", "std", "pmr"},
       "256 sprites, named in the table of a world's things by pointer, index or byte",
       "index_pool"},
      {"tile_cache",
       "tile_cache",
       {},
       {"plain", "handle_stack", "std", "pmr"},
       "the free tiles of texture pages of 64 × 64, taken and given back by value",
       "handle_stack"},
      {"level_loading",
       "level_loading",
       {},
       {"plain", "marker_arena", "pmr"},
       "a level's assets loaded with temporaries, played above, unloaded at once",
       "marker_arena"},
      {"entity_pool",
       "entity_pool",
       {},
       {"plain", "pool", "pmr"},
       "entities with matrices that begin and end in random order",
       "pool"},
      {"split_strings",
       "split_strings",
       {},
       {"plain", "inline_vector", "pmr"},
       "lines of a log split into vectors of strings",
       "inline_vector"},
  };
  return table;
}

std::vector<Scenario> expand(const std::vector<Group>& table) {
  std::vector<Scenario> scenarios;
  for (const Group& group : table) {
    const std::vector<const char*> memories = group.memories.empty() ? std::vector<const char*>{""} : group.memories;
    for (const std::string memory : memories) {
      Scenario scenario{group.name,      group.name,      group.program, memory,
                        group.component, group.arguments, group.summary, group.least_threads};
      if (!memory.empty()) {
        scenario.name += "_" + memory;
        scenario.arguments.insert(scenario.arguments.end(), {"--memory", memory});
        scenario.summary += ": " + memory;
      }
      scenarios.push_back(std::move(scenario));
    }
  }
  return scenarios;
}

}  // namespace

std::vector<Scenario> all_scenarios(const std::vector<RealProgram>& programs) {
  std::vector<Scenario> scenarios = expand(groups());
  for (const RealProgram& program : programs) {
    Scenario scenario{program.name, program.name, {}};
    scenario.summary = program.summary;
    scenario.real = program;
    scenarios.push_back(std::move(scenario));
  }
  return scenarios;
}

std::vector<Scenario> scenarios_named(const std::vector<std::string>& names, const std::vector<Scenario>& all) {
  const auto is_called = [](const Scenario& scenario, const std::string& name) {
    return scenario.name == name || scenario.group == name || (scenario.real ? "programs" : "built-in") == name;
  };
  std::vector<std::string> known = {"built-in", "programs"};
  for (const Scenario& scenario : all)
    known.insert(known.end(), {scenario.name, scenario.group});
  std::vector<Scenario> chosen;
  for (const std::string& name : names) {
    index_of(name, known, "scenario");
    for (const Scenario& scenario : all) {
      const auto same = [&](const Scenario& other) { return other.name == scenario.name; };
      if (is_called(scenario, name) && std::none_of(chosen.begin(), chosen.end(), same)) chosen.push_back(scenario);
    }
  }
  return chosen;
}

}  // namespace bench
