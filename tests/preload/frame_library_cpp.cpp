// A library in C++ that uses frames and scopes; loaded and unloaded by frame_loading.
#include <memory_resource>
#include <sluice/frame.hpp>
#include <sluice/scope.hpp>
#include <string>
#include <vector>

// Returns the number of strings that changed. What it leaves in frame memory ends with the thread.
extern "C" int library_damage() {
  (void)sluice_frame_alloc(100, 8);
  sluice::frame frame;
  const sluice::scope scope;
  std::pmr::vector<std::pmr::string> in_frame(frame.resource());
  std::vector<std::string> in_scope;
  for (std::size_t i = 0; i < 300; ++i) {
    in_frame.emplace_back(i, 'f');
    in_scope.emplace_back(i, 's');
  }
  int damage = 0;
  for (std::size_t i = 0; i < 300; ++i) {
    damage += in_frame[i].find_first_not_of('f') != std::string::npos;
    damage += in_scope[i].find_first_not_of('s') != std::string::npos;
  }
  return damage;
}
