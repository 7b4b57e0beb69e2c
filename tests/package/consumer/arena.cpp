// usage: arena present|absent
// Uses a scope and a frame, and exits with 0 when the scope took effect exactly where Sluice is present and the memory
// of both held.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <memory_resource>
#include <sluice/frame.hpp>
#include <sluice/scope.hpp>
#include <string>
#include <string_view>
#include <vector>

int main(int argc, char** argv) {
  const bool present = argc == 2 && std::string_view(argv[1]) == "present";
  if ((sluice_present() != 0) != present) {
    std::fprintf(stderr, "arena: Sluice is %s\n", sluice_present() ? "present" : "absent");
    return 1;
  }
  std::vector<std::string> escapes;
  {
    const sluice::scope scope;
    if (scope.in_effect() != present) {
      std::fprintf(stderr, "arena: the scope is%s in effect\n", present ? " not" : "");
      return 1;
    }
    void* const block = std::malloc(40);
    const bool placed = malloc_usable_size(block) == 40;  // the pools have blocks of 48 bytes
    std::free(block);
    if (present && !placed) {
      std::fprintf(stderr, "arena: the scope places nothing\n");
      return 1;
    }
    escapes.assign(1000, std::string(100, 'x'));
  }
  sluice::frame frame;
  std::pmr::vector<std::pmr::string> texts(frame.resource());
  texts.assign(3000, std::pmr::string(100, 'y', frame.resource()));
  for (const std::string& each : escapes)
    if (each != std::string(100, 'x')) return 1;
  for (const std::pmr::string& each : texts)
    if (std::string_view(each) != std::string(100, 'y')) return 1;
  return 0;
}
