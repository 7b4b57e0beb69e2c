// usage: news
// Allocates with new alone, and exits with 0 when Sluice served it and a request too large ends in std::bad_alloc.
#include <sluice/sluice.h>

#include <cstdint>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

int main() {
  if (!sluice_present()) {
    std::fprintf(stderr, "news: no Sluice in this program\n");
    return 1;
  }
  sluice_stats before{}, with{};
  sluice_stats_get(&before, sizeof before);
  std::vector<std::string> texts(10000, std::string(100, 'x'));
  sluice_stats_get(&with, sizeof with);
  if (with.live_bytes < before.live_bytes + 10000 * 100) {
    std::fprintf(stderr, "news: operator new is not Sluice's\n");
    return 1;
  }
  try {
    volatile std::size_t size = PTRDIFF_MAX;
    ::operator delete(::operator new(size));
  } catch (const std::bad_alloc&) {
    return 0;
  }
  std::fprintf(stderr, "news: no std::bad_alloc\n");
  return 1;
}
