// A small program that allocates in C and C++, and then prints its own mappings. Open it when golden_order.py is to see
// more of the library run.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

int main() {
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) {
    texts.push_back(std::string(static_cast<std::size_t>(i), 'x'));
    void* const block = std::realloc(std::malloc(10), 100);
    if (block == nullptr) return 1;
    std::free(block);
    std::free(std::calloc(3, 7));
  }
  texts.clear();
  FILE* const mappings = std::fopen("/proc/self/smaps", "r");
  if (mappings == nullptr) return 1;
  for (int c; (c = std::getc(mappings)) != EOF;)
    std::putchar(c);
  return std::fclose(mappings);
}
