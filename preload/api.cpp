// The functions of sluice/sluice.h.
#include <errno.h>

#include "front.hpp"
#include "sluice/sluice.h"
#include "stats/profile_file.hpp"
#include "stats/report.hpp"
#include "stats/snapshot.hpp"
#if !defined(SLUICE_MACHO)  // where no heap stands aside
#include "stand_aside.hpp"
#endif

#define SLUICE_EXPORT __attribute__((visibility("default")))

namespace sluice {
namespace {

int result_of(int error) noexcept {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

}  // namespace
}  // namespace sluice

extern "C" {

SLUICE_EXPORT const char* sluice_version(void) {
  return SLUICE_VERSION;
}

SLUICE_EXPORT int sluice_stats_get(sluice_stats* out, size_t sizeof_out) {
  if (out == nullptr) {
    errno = EINVAL;
    return -1;
  }
  sluice::stats::Snapshot snapshot;
  sluice::stats::take_figures(&snapshot);
  const sluice_stats all = {
      .counting = snapshot.counting,
      .mallocs = snapshot.mallocs,
      .frees = snapshot.frees,
      .requested_bytes = snapshot.requested_bytes,
      .allocated_bytes = snapshot.allocated_bytes,
      .freed_bytes = snapshot.freed_bytes,
      .live_bytes = snapshot.live_bytes,
      .peak_live_bytes = snapshot.peak_live_bytes,
      .active_bytes = snapshot.active_bytes,
      .cached_bytes = snapshot.cached_bytes,
      .retained_bytes = snapshot.retained_bytes,
      .mapped_bytes = snapshot.mapped_bytes,
      .metadata_bytes = snapshot.metadata_bytes,
      .threads = snapshot.threads.live,
      .scopes = snapshot.arena.scopes,
      .arena_live_bytes = snapshot.arena.live_bytes,
      .arena_chunk_bytes = snapshot.arena.chunks * sluice::unit_size,
      .frame_bytes = snapshot.arena.frame_bytes,
  };
  const size_t known = sizeof_out < sizeof all ? sizeof_out : sizeof all;
  __builtin_memset(out, 0, sizeof_out);
  __builtin_memcpy(out, &all, known);
  return 0;
}

SLUICE_EXPORT int sluice_stats_print(int fd, int json) {
  return sluice::result_of(sluice::stats::print_report(fd, json != 0));
}

SLUICE_EXPORT int sluice_profile_start(size_t rate) {
  return sluice::result_of(sluice::stats::start_profile_now(rate));
}

SLUICE_EXPORT int sluice_profile_dump(const char* path) {
  return sluice::result_of(sluice::stats::dump_profile_now(path));
}

SLUICE_EXPORT int sluice_profile_stop(void) {
  return sluice::result_of(sluice::stats::stop_profile_now());
}

SLUICE_EXPORT void sluice_idle(void) {
  sluice::heap::idle();
}

#if defined(SLUICE_ARENA)

SLUICE_EXPORT int sluice_scope_enter(sluice_scope* scope, unsigned flags) {
  return sluice::arena::enter(scope, flags);
}

SLUICE_EXPORT void sluice_scope_leave(sluice_scope* scope) {
  sluice::arena::leave(scope);
}

#else

SLUICE_EXPORT int sluice_scope_enter(sluice_scope*, unsigned) {
  return -1;
}

SLUICE_EXPORT void sluice_scope_leave(sluice_scope*) {}

#endif

#if defined(SLUICE_FRAMES)

SLUICE_EXPORT sluice_frame_chunk* sluice_frame_chunk_get(sluice_frame_state* state, size_t bytes) {
#if !defined(SLUICE_MACHO)
  if (sluice::heap::stands_aside()) return sluice::stand_aside::get_chunk(state, bytes);
#endif
  return sluice::arena::get_chunk(state, bytes);
}

SLUICE_EXPORT void sluice_frame_chunk_put(sluice_frame_chunk* chunk) {
#if !defined(SLUICE_MACHO)
  if (sluice::heap::stands_aside()) return sluice::stand_aside::put_chunk(chunk);
#endif
  sluice::arena::put_chunk(chunk);
}

#endif

}  // extern "C"
