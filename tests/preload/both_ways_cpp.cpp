// Uses sluice::frame and sluice::scope on Sluice and without it: the same binary runs both ways.
// Usage: both_ways_cpp with|without. Ends with status 0 when everything held and the process runs on what was said.
#include <cstdio>
#include <memory_resource>
#include <sluice/frame.hpp>
#include <sluice/scope.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "both_ways_cpp: %s\n", what);
  ++failures;
}

// Whether the text is so long and consists of that letter.
bool is_text(std::string_view text, std::size_t length, int letter) {
  return text.size() == length && text.find_first_not_of(static_cast<char>('a' + letter)) == std::string_view::npos;
}

void use_frames() {
  sluice::frame outer;
  std::pmr::vector<std::pmr::string> kept(outer.resource());
  for (int round = 0; round < 20; ++round) {
    sluice::frame frame;
    std::pmr::vector<std::pmr::string> words(frame.resource());
    for (int i = 0; i < 3000; ++i)
      words.emplace_back(static_cast<std::size_t>(i % 90), static_cast<char>('a' + i % 26));
    kept.push_back(words[static_cast<std::size_t>(round)]);
    for (int i = 0; i < 3000; ++i)
      expect(is_text(words[static_cast<std::size_t>(i)], static_cast<std::size_t>(i % 90), i % 26),
             "a string in a frame changed");
  }
  for (std::size_t i = 0; i < kept.size(); ++i)
    expect(is_text(kept[i], i, static_cast<int>(i)), "a string in an outer frame changed");
}

void use_scopes(bool present) {
  std::vector<std::string> escapes;
  for (int round = 0; round < 20; ++round) {
    const sluice::scope scope;
    expect(scope.in_effect() == present, "a scope is not what it should be");
    const sluice::scope pools(sluice::routing::off);
    expect(pools.in_effect() == present, "a scope that does not route is not what it should be");
    escapes.emplace_back(100, static_cast<char>('a' + round));
  }
  for (std::size_t i = 0; i < escapes.size(); ++i)
    expect(is_text(escapes[i], 100, static_cast<int>(i)), "a string of a scope changed");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc == 2 ? argv[1] : "";
  if (how != "with" && how != "without") {
    std::fputs("usage: both_ways_cpp with|without\n", stderr);
    return 2;
  }
  const bool present = how == "with";
  expect((sluice_present() != 0) == present, "sluice_present() does not say what was said");
  use_frames();
  use_scopes(present);
  for (int i = 0; i < 50; ++i)
    std::thread([present] {
      use_frames();
      use_scopes(present);
    }).join();
  return failures == 0 ? 0 : 1;
}
