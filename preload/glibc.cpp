// glibc's own statistics and tuning calls, answered for our heap: without them programs would read the figures of
// libc's idle one. Empty on other C libraries.
#include <stdio.h>

#if defined(__GLIBC__)
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include <atomic>

#include "base/layout.hpp"
#include "base/print.hpp"
#include "heap/large.hpp"
#include "pages/region.hpp"
#include "stats/dump_memory.hpp"
#include "stats/report.hpp"
#include "stats/writers.hpp"

#define SLUICE_EXPORT __attribute__((visibility("default")))

namespace {

using sluice::stats::Snapshot;

// While other threads go on, counts and what was found by looking may differ by a block.
uint64_t difference(uint64_t whole, uint64_t part) noexcept {
  return whole > part ? whole - part : 0;
}

// In glibc's terms the arena is what small blocks and objects of scopes live in, and large spans are "mmapped". Guarded
// blocks, most of which are small, are counted where glibc would count them.
struct mallinfo2 figures() noexcept {
  Snapshot snapshot;
  sluice::stats::take_figures(&snapshot);
  struct mallinfo2 info {};
  uint64_t free_blocks = 0;
  uint64_t slab_bytes = 0;
  uint64_t small_live_bytes = 0;
  for (const sluice::stats::ClassFigures& figures : snapshot.classes) {
    free_blocks += figures.carved_blocks - figures.live_blocks;
    slab_bytes += figures.slab_bytes;
    small_live_bytes += figures.live_blocks * figures.block_size;
  }
  small_live_bytes += snapshot.arena.live_bytes + snapshot.guarded_bytes;
  info.arena =
      slab_bytes + snapshot.arena.chunks * sluice::unit_size + snapshot.guarded_bytes + snapshot.retained_bytes;
  info.ordblks = free_blocks;
  info.hblks = difference(snapshot.large.live_spans, snapshot.guarded_blocks);
  info.hblkhd = difference(snapshot.large.live_bytes, snapshot.guarded_bytes);
  info.usmblks = snapshot.peak_live_bytes;
  info.uordblks = small_live_bytes;
  info.fordblks = info.arena - small_live_bytes;
  info.keepcost = snapshot.retained_bytes;
  return info;
}

int saturated(size_t value) noexcept {
  return value > INT_MAX ? INT_MAX : static_cast<int>(value);
}

struct StreamAndMemory {
  FILE* stream;
  sluice::stats::DumpMemory memory;
};

void give_back(void* memory) noexcept {
  static_cast<sluice::stats::DumpMemory*>(memory)->give_back();
}

// As in glibc a thread may be cancelled while it waits for the stream.
int write_to_stream(void* context, const char* data, size_t size) noexcept {
  auto* const to = static_cast<StreamAndMemory*>(context);
  size_t written = 0;
  pthread_cleanup_push(give_back, &to->memory);
  written = fwrite(data, 1, size, to->stream);
  pthread_cleanup_pop(0);
  return written == size ? 0 : errno;
}

}  // namespace

extern "C" {

SLUICE_EXPORT struct mallinfo2 mallinfo2(void) noexcept {
  return figures();
}

// As in glibc the fields are too narrow for large heaps; they stop at INT_MAX.
SLUICE_EXPORT struct mallinfo mallinfo(void) noexcept {
  const struct mallinfo2 wide = figures();
  struct mallinfo info {};
  info.arena = saturated(wide.arena);
  info.ordblks = saturated(wide.ordblks);
  info.hblks = saturated(wide.hblks);
  info.hblkhd = saturated(wide.hblkhd);
  info.usmblks = saturated(wide.usmblks);
  info.uordblks = saturated(wide.uordblks);
  info.fordblks = saturated(wide.fordblks);
  info.keepcost = saturated(wide.keepcost);
  return info;
}

SLUICE_EXPORT void malloc_stats(void) noexcept {
  (void)sluice::stats::print_report(STDERR_FILENO, false);
}

SLUICE_EXPORT int malloc_info(int options, FILE* stream) noexcept {
  if (options != 0) return EINVAL;
  StreamAndMemory to{stream, {}};
  if (!to.memory) {
    errno = ENOMEM;
    return -1;
  }
  sluice::stats::take_snapshot(&to.memory.snapshot());
  sluice::Print out(to.memory.text(), to.memory.text_capacity(), write_to_stream, &to);
  sluice::stats::write_xml(out, to.memory.snapshot());
  return out.finish() == 0 ? 0 : -1;
}

// What parameters of glibc's malloc mean here:
//   M_TRIM_THRESHOLD  how many bytes of free pages are kept, however long; more go back at once. Negative: memory never
//                     goes back by itself, as programs want it that must not wait for page faults.
//   M_MMAP_THRESHOLD  the pages of freed blocks of so many bytes and more go back at once, as if each had a mapping…
//   M_MMAP_MAX        …unless this is 0. Without M_MMAP_THRESHOLD no block goes back at once, as with M_MMAP_MAX 0.
// The others are hints for glibc's own design: they are accepted and change nothing.
SLUICE_EXPORT int mallopt(int parameter, int value) noexcept {
  static std::atomic<size_t> mmap_threshold{SIZE_MAX};
  static std::atomic<bool> no_mmap{false};
  const size_t amount = value < 0 ? SIZE_MAX : static_cast<size_t>(value);
  switch (parameter) {
    case M_TRIM_THRESHOLD:
      sluice::region::keep_free(amount);
      return 1;
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
      if (parameter == M_MMAP_MAX)
        no_mmap.store(value == 0, std::memory_order_relaxed);
      else
        mmap_threshold.store(amount, std::memory_order_relaxed);
      sluice::large::drop_freed(
          no_mmap.load(std::memory_order_relaxed) ? SIZE_MAX : mmap_threshold.load(std::memory_order_relaxed));
      return 1;
    case M_MXFAST:
    case M_TOP_PAD:
    case M_CHECK_ACTION:
    case M_PERTURB:
    case M_ARENA_TEST:
    case M_ARENA_MAX:
      return 1;
    default:
      return 0;
  }
}

SLUICE_EXPORT __attribute__((alias("mallinfo"))) struct mallinfo __libc_mallinfo(void) noexcept;
SLUICE_EXPORT __attribute__((alias("mallopt"))) int __libc_mallopt(int, int) noexcept;

}  // extern "C"
#endif
