// glibc's own statistics and tuning calls, answered for our heap: without them programs would read the figures of
// libc's idle one. Empty on other C libraries.
#include <stdio.h>

#if defined(__GLIBC__)
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <unistd.h>

#include "base/layout.hpp"
#include "base/print.hpp"
#include "stats/report.hpp"
#include "stats/writers.hpp"

#define SLUICE_EXPORT __attribute__((visibility("default")))

namespace {

using sluice::stats::Snapshot;

// In glibc's terms the arena is what small blocks and objects of scopes live in, and large spans are "mmapped".
struct mallinfo2 figures() noexcept {
  Snapshot snapshot;
  sluice::stats::take_snapshot(&snapshot);
  struct mallinfo2 info {};
  uint64_t free_blocks = 0;
  uint64_t slab_bytes = 0;
  uint64_t small_live_bytes = 0;
  for (const sluice::stats::ClassFigures& figures : snapshot.classes) {
    free_blocks += figures.carved_blocks - figures.live_blocks;
    slab_bytes += figures.slab_bytes;
    small_live_bytes += figures.live_blocks * figures.block_size;
  }
  small_live_bytes += snapshot.arena.live_bytes;
  info.arena = slab_bytes + snapshot.arena.chunks * sluice::unit_size + snapshot.retained_bytes;
  info.ordblks = free_blocks;
  info.hblks = snapshot.large.live_spans;
  info.hblkhd = snapshot.large.live_bytes;
  info.usmblks = snapshot.peak_live_bytes;
  info.uordblks = small_live_bytes;
  info.fordblks = info.arena - small_live_bytes;
  info.keepcost = snapshot.retained_bytes;
  return info;
}

int saturated(size_t value) noexcept {
  return value > INT_MAX ? INT_MAX : static_cast<int>(value);
}

int write_to_stream(void* stream, const char* data, size_t size) noexcept {
  return fwrite(data, 1, size, static_cast<FILE*>(stream)) == size ? 0 : errno;
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
  Snapshot snapshot;
  sluice::stats::take_snapshot(&snapshot);
  char buffer[512];
  sluice::Print out(buffer, sizeof buffer, write_to_stream, stream);
  sluice::stats::write_xml(out, snapshot);
  return out.finish() == 0 ? 0 : -1;
}

// The parameters of glibc are hints for its own design. Those that it knows are accepted and change nothing.
SLUICE_EXPORT int mallopt(int parameter, int) noexcept {
  switch (parameter) {
    case M_MXFAST:
    case M_TRIM_THRESHOLD:
    case M_TOP_PAD:
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
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
