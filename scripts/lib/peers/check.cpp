// Whether a library that is preloaded serves all that programs allocate with: each function must come from it, and
// blocks must hold what they were given across threads and after a fork. Open it when scripts/peers refuses an
// allocator.
#include <dlfcn.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

// malloc and free, then new, new[], delete, delete[]; plain, nothrow, sized, aligned.
constexpr const char* functions[] = {"malloc",
                                     "calloc",
                                     "realloc",
                                     "free",
                                     "posix_memalign",
                                     "aligned_alloc",
                                     "malloc_usable_size",
                                     "_Znwm",
                                     "_Znam",
                                     "_ZdlPv",
                                     "_ZdaPv",
                                     "_ZnwmRKSt9nothrow_t",
                                     "_ZdlPvm",
                                     "_ZdaPvm",
                                     "_ZnwmSt11align_val_t",
                                     "_ZdlPvSt11align_val_t"};

bool is_served_by(const char* function, const std::string& library) {
  Dl_info info;
  void* const address = dlsym(RTLD_DEFAULT, function);
  if (address != nullptr && dladdr(address, &info) != 0 && library == info.dli_fname) return true;
  std::fprintf(stderr, "%s comes from %s\n", function, address == nullptr ? "nowhere" : info.dli_fname);
  return false;
}

// Blocks of all sizes, allocated by one thread, checked and freed by another.
bool hold_what_they_were_given() {
  std::vector<std::unique_ptr<std::string>> texts;
  std::vector<unsigned char*> blocks;
  std::thread([&] {
    for (std::size_t i = 0; i < 20000; ++i) {
      const std::size_t size = 1 + i * 37 % 70000;
      auto* block = static_cast<unsigned char*>(i % 3 == 0   ? std::calloc(1, size)
                                                : i % 3 == 1 ? std::realloc(std::malloc(size / 2 + 1), size)
                                                             : std::aligned_alloc(64, (size + 63) / 64 * 64));
      block[0] = block[size - 1] = static_cast<unsigned char>(i);
      blocks.push_back(block);
      texts.push_back(std::make_unique<std::string>(i % 900, static_cast<char>('a' + i % 26)));
    }
  }).join();
  bool well = true;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::size_t size = 1 + i * 37 % 70000;
    well = well && blocks[i][0] == static_cast<unsigned char>(i) && blocks[i][size - 1] == blocks[i][0] &&
           malloc_usable_size(blocks[i]) >= size && *texts[i] == std::string(i % 900, static_cast<char>('a' + i % 26));
    std::free(blocks[i]);
  }
  return well;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  bool well = true;
  for (const char* const function : functions)
    well = is_served_by(function, arguments[1]) && well;
  well = hold_what_they_were_given() && well;
  const pid_t child = fork();
  if (child == 0) std::exit(hold_what_they_were_given() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) std::fprintf(stderr, "after a fork: status %d\n", status);
  return well && status == 0 ? 0 : 1;
}
