// See dump_memory.hpp.
#include "stats/dump_memory.hpp"

#include <atomic>

#include "os/process.hpp"
#include "os/seldom_touched.hpp"

namespace sluice::stats {
namespace {

constexpr size_t mapped_bytes = 256 * 1024;  // the longest dump, metrics with every class, has less than 128 KiB

}  // namespace

struct DumpMemory::Kept {
  Parts parts;
  char text[4096];
  std::atomic<bool> taken;
};
SLUICE_SELDOM_TOUCHED constinit DumpMemory::Kept DumpMemory::kept{};

DumpMemory::DumpMemory() noexcept {
  static_assert(mapped_bytes > sizeof(Parts) + 128 * 1024);
  if (void* const memory = os::map_scratch(mapped_bytes)) {
    parts_ = static_cast<Parts*>(memory);
    text_ = static_cast<char*>(memory) + sizeof(Parts);
    text_capacity_ = mapped_bytes - sizeof(Parts);
  } else if (!kept.taken.exchange(true, std::memory_order_acquire)) {  // pairs with give_back
    parts_ = &kept.parts;
    text_ = kept.text;
    text_capacity_ = sizeof kept.text;
  }
}

void DumpMemory::give_back() noexcept {
  if (parts_ == &kept.parts)
    kept.taken.store(false, std::memory_order_release);
  else if (parts_ != nullptr)
    os::unmap_scratch(parts_, mapped_bytes);
  parts_ = nullptr;
}

void DumpMemory::forget_others() noexcept {
  kept.taken.store(false, std::memory_order_relaxed);
}

}  // namespace sluice::stats
