// Which blocks a program can still find: graphs of blocks, compared with what a plain search says of the same graph.
#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "os/memory.hpp"
#include "os/roots.hpp"
#include "profile/profile.hpp"
#include "profiled.hpp"
#include "stats/live_parts.hpp"
#include "stats/reachability.hpp"

namespace {

using namespace sluice;
using std::string;

// A pointer that nobody takes for one.
struct Hidden {
  uintptr_t turned = 0;
  void set(void* block) { turned = ~reinterpret_cast<uintptr_t>(block); }
  void** block() const { return reinterpret_cast<void**>(~turned); }
};

profile::RecordNumber number_of(const Hidden& hidden) {
  return profile::record_of(hidden.block());
}

#if defined(SLUICE_TEST_SANITIZER)
#define NEEDS_ROOTS() GTEST_SKIP() << "a sanitizer's memory is a root of terabytes"
#else
#define NEEDS_ROOTS() (void)0
#endif

constexpr uint64_t patience_ms = 60'000;

// The environment lies above all frames: no stack is a root.
os::ThreadMark mark_without_stack() {
  return os::mark_thread(reinterpret_cast<uintptr_t>(environ[0]));
}

string find(stats::Reachability& reachability) {
  const os::ThreadMark mark = mark_without_stack();
  const profile::Reading now(true);
  const auto outcome = reachability.find(now.records(), mark, os::clock_ms() + patience_ms);
  return outcome == stats::Reachability::Outcome::Done ? "" : "it was not done";
}

// A graph of blocks, each with its successors as its words, and a few with a pointer in `roots`.
struct Graph {
  std::vector<std::vector<unsigned>> edges;
  std::vector<Hidden> blocks;
  std::vector<unsigned> kept;

  Graph(std::mt19937& random, unsigned count, unsigned edge_count) : edges(count), blocks(count) {
    for (unsigned i = 0; i < edge_count; ++i)
      edges[random() % count].push_back(static_cast<unsigned>(random() % count));
    for (unsigned i = 0; i < count; ++i) {
      const size_t words = edges[i].size() + random() % 8;
      blocks[i].set(test::allocate((words + 1) * sizeof(void*)));
    }
    for (unsigned i = 0; i < count; ++i)
      for (size_t k = 0; k < edges[i].size(); ++k)
        blocks[i].block()[k] = blocks[edges[i][k]].block();
    kept = {static_cast<unsigned>(random() % count), static_cast<unsigned>(random() % count)};
  }

  std::set<unsigned> found_from(const std::vector<unsigned>& starts) const {
    std::set<unsigned> found(starts.begin(), starts.end());
    std::vector<unsigned> open(starts);
    while (!open.empty()) {
      const unsigned at = open.back();
      open.pop_back();
      for (const unsigned next : edges[at])
        if (found.insert(next).second) open.push_back(next);
    }
    return found;
  }
};

void* volatile roots[2];

// Every leaked block is led to by its leader, and no leader is led to by another one.
string compare(const Graph& graph, stats::Reachability& reachability) {
  const std::set<unsigned> reachable = graph.found_from(graph.kept);
  std::set<unsigned> leaders;
  std::vector<unsigned> leader_of(graph.edges.size());
  std::vector<std::pair<profile::RecordNumber, unsigned>> by_number;
  for (unsigned i = 0; i < graph.edges.size(); ++i)
    by_number.emplace_back(number_of(graph.blocks[i]), i);
  std::sort(by_number.begin(), by_number.end());
  for (unsigned i = 0; i < graph.edges.size(); ++i) {
    const profile::RecordNumber leader = reachability.leader_of(number_of(graph.blocks[i]));
    if ((leader == profile::no_record) != (reachable.count(i) != 0)) return "reachable: " + std::to_string(i);
    if (leader == profile::no_record) continue;
    const auto at = std::lower_bound(by_number.begin(), by_number.end(), std::pair(leader, 0U));
    if (at == by_number.end() || at->first != leader) return "led by no block of the graph";
    leader_of[i] = at->second;
    leaders.insert(at->second);
  }
  for (const unsigned leader : leaders) {
    if (leader_of[leader] != leader) return "a leader is led";
    const std::set<unsigned> led = graph.found_from({leader});
    for (const unsigned other : leaders)
      if (other != leader && led.count(other) != 0) return "a leader is found from another one";
    for (unsigned i = 0; i < graph.edges.size(); ++i)
      if (reachable.count(i) == 0 && leader_of[i] == leader && led.count(i) == 0) return "it does not lead there";
  }
  return "";
}

TEST(Reachability, AgreesWithAPlainSearchOnRandomGraphs) {
  NEEDS_ROOTS();
  std::mt19937 random(1);
  for (const unsigned edges : {0U, 100U, 200U, 250U, 300U, 500U}) {
    for (int round = 0; round < 5; ++round) {
      EXPECT_EQ(test::profiled(1,
                               [&]() -> string {
                                 const Graph graph(random, 200, edges);
                                 for (size_t i = 0; i < 2; ++i)
                                   roots[i] = graph.blocks[graph.kept[i]].block();
                                 stats::Reachability reachability;
                                 const string problem = find(reachability);
                                 return problem.empty() ? compare(graph, reachability) : problem;
                               }),
                "")
          << edges;
      (void)random();
    }
  }
}

TEST(Reachability, ALongListThatEndsWithItsFirstBlockHasOneLeader) {
  NEEDS_ROOTS();
  EXPECT_EQ(test::profiled(1,
                           []() -> string {
                             constexpr unsigned length = 200'000;
                             std::vector<Hidden> blocks(length);
                             for (unsigned i = 0; i < length; ++i) {
                               blocks[i].set(test::allocate(32));
                               blocks[i].block()[0] = i != 0 ? blocks[i - 1].block() : nullptr;
                             }
                             roots[0] = nullptr;
                             roots[1] = nullptr;
                             stats::Reachability reachability;
                             if (string problem = find(reachability); !problem.empty()) return problem;
                             for (const Hidden& each : blocks)
                               if (reachability.leader_of(number_of(each)) != number_of(blocks.back()))
                                 return "another leader";
                             return "";
                           }),
            "");
}

TEST(Reachability, GivesUpWhenItIsLate) {
  NEEDS_ROOTS();
  EXPECT_EQ(test::profiled(1,
                           []() -> string {
                             for (int i = 0; i < 5000; ++i)
                               *static_cast<void* volatile*>(test::allocate(32)) = nullptr;
                             stats::Reachability reachability;
                             const os::ThreadMark mark = mark_without_stack();
                             const profile::Reading now(true);
                             return reachability.find(now.records(), mark, 0) == stats::Reachability::Outcome::TooLong
                                        ? ""
                                        : "no";
                           }),
            "");
}

TEST(LiveParts, SumUpByGeneration) {
  EXPECT_EQ(test::profiled(1,
                           []() -> string {
                             std::vector<void*> kept;
                             for (int generation = 0; generation < 3; ++generation) {
                               for (int i = 0; i <= generation; ++i)
                                 kept.push_back(test::allocate(100));
                               heap::free(test::allocate(100));
                               profile::Reading(true).begin_generation();
                             }
                             profile::Reading now(true);
                             std::vector<char> memory(stats::LiveParts::bytes_for(now.records().end()));
                             stats::LiveParts parts(memory.data());
                             parts.add(now.records(), nullptr);
                             double objects[4]{};
                             double bytes = 0;
                             for (const profile::Site* site = now.sites().first(); site != nullptr; site = site->next)
                               parts.for_each_of(*site, [&](const stats::LivePart& part) {
                                 objects[part.generation] += part.live.objects;
                                 bytes += part.live.bytes;
                               });
                             if (objects[0] != 0 || objects[1] != 2 || objects[2] != 3 || objects[3] != 0)
                               return "other blocks";
                             return bytes == 500 ? "" : "other bytes";
                           }),
            "");
}

}  // namespace
