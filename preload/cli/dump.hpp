// A statistics dump read back from JSON, and the table of its figures. Open it when a figure is added to the
// schema.
#pragma once

#include <cstdint>
#include <string>

#include "stats/snapshot.hpp"

namespace sluice::cli {

struct Dump {
  std::string source;  // the file's name, for messages
  std::string program;
  std::string version;
  uint64_t pid = 0;
  stats::Snapshot snapshot{};
};

// A figure of one of the structs in a snapshot, by its name in JSON.
template <typename Figures>
struct Field {
  const char* name;
  uint64_t Figures::*member;
};

inline constexpr Field<stats::Snapshot> total_fields[] = {
    {"allocated_bytes", &stats::Snapshot::allocated_bytes},
    {"freed_bytes", &stats::Snapshot::freed_bytes},
    {"live_bytes", &stats::Snapshot::live_bytes},
    {"peak_live_bytes", &stats::Snapshot::peak_live_bytes},
    {"requested_bytes", &stats::Snapshot::requested_bytes},
    {"mallocs", &stats::Snapshot::mallocs},
    {"frees", &stats::Snapshot::frees},
    {"active_bytes", &stats::Snapshot::active_bytes},
    {"resident_bytes", &stats::Snapshot::resident_bytes},
    {"reserved_bytes", &stats::Snapshot::reserved_bytes},
    {"mapped_bytes", &stats::Snapshot::mapped_bytes},
    {"metadata_bytes", &stats::Snapshot::metadata_bytes},
    {"retained_bytes", &stats::Snapshot::retained_bytes},
    {"cached_bytes", &stats::Snapshot::cached_bytes},
};

inline constexpr Field<stats::ClassFigures> class_fields[] = {
    {"mallocs", &stats::ClassFigures::mallocs},
    {"frees", &stats::ClassFigures::frees},
    {"requested_bytes", &stats::ClassFigures::requested_bytes},
    {"live_blocks", &stats::ClassFigures::live_blocks},
    {"peak_live_blocks", &stats::ClassFigures::peak_live_blocks},
    {"cached_blocks", &stats::ClassFigures::cached_blocks},
    {"slabs", &stats::ClassFigures::slabs},
    {"slab_bytes", &stats::ClassFigures::slab_bytes},
    {"carved_blocks", &stats::ClassFigures::carved_blocks},
};

inline constexpr Field<stats::LargeFigures> large_fields[] = {
    {"mallocs", &stats::LargeFigures::mallocs},
    {"frees", &stats::LargeFigures::frees},
    {"requested_bytes", &stats::LargeFigures::requested_bytes},
    {"allocated_bytes", &stats::LargeFigures::allocated_bytes},
    {"freed_bytes", &stats::LargeFigures::freed_bytes},
    {"live_bytes", &stats::LargeFigures::live_bytes},
    {"live_spans", &stats::LargeFigures::live_spans},
    {"peak_live_bytes", &stats::LargeFigures::peak_live_bytes},
};

inline constexpr Field<stats::ArenaFigures> arena_fields[] = {
    {"scopes", &stats::ArenaFigures::scopes},
    {"objects", &stats::ArenaFigures::objects},
    {"requested_bytes", &stats::ArenaFigures::requested_bytes},
    {"bytes", &stats::ArenaFigures::bytes},
    {"freed_bytes", &stats::ArenaFigures::freed_bytes},
    {"live_bytes", &stats::ArenaFigures::live_bytes},
    {"lifo_frees", &stats::ArenaFigures::lifo_frees},
    {"out_of_order_frees", &stats::ArenaFigures::out_of_order_frees},
    {"remote_frees", &stats::ArenaFigures::remote_frees},
    {"grown_in_place", &stats::ArenaFigures::grown_in_place},
    {"chunks", &stats::ArenaFigures::chunks},
    {"hot_chunks", &stats::ArenaFigures::hot_chunks},
    {"pinned_chunks", &stats::ArenaFigures::pinned_chunks},
    {"pinned_bytes", &stats::ArenaFigures::pinned_bytes},
    {"chunks_opened", &stats::ArenaFigures::chunks_opened},
    {"chunks_recycled", &stats::ArenaFigures::chunks_recycled},
    {"back_offs", &stats::ArenaFigures::back_offs},
    {"stale_leaves", &stats::ArenaFigures::stale_leaves},
    {"abandoned_scopes", &stats::ArenaFigures::abandoned_scopes},
    {"depth_overflows", &stats::ArenaFigures::depth_overflows},
    {"frame_chunks", &stats::ArenaFigures::frame_chunks},
    {"frame_bytes", &stats::ArenaFigures::frame_bytes},
    {"frame_chunks_opened", &stats::ArenaFigures::frame_chunks_opened},
};

inline constexpr Field<stats::ThreadFigures> thread_fields[] = {
    {"live", &stats::ThreadFigures::live},
    {"peak", &stats::ThreadFigures::peak},
    {"started", &stats::ThreadFigures::started},
    {"caches", &stats::ThreadFigures::caches},
};

inline constexpr Field<stats::OsFigures> os_fields[] = {
    {"mmap_calls", &stats::OsFigures::mmap_calls},       {"munmap_calls", &stats::OsFigures::munmap_calls},
    {"mremap_calls", &stats::OsFigures::mremap_calls},   {"mprotect_calls", &stats::OsFigures::mprotect_calls},
    {"madvise_calls", &stats::OsFigures::madvise_calls}, {"failed_calls", &stats::OsFigures::failed_calls},
    {"purged_bytes", &stats::OsFigures::purged_bytes},
};

inline constexpr Field<stats::ForeignFigures> foreign_fields[] = {
    {"frees", &stats::ForeignFigures::frees},
    {"reallocs", &stats::ForeignFigures::reallocs},
    {"usable_sizes", &stats::ForeignFigures::usable_sizes},
    {"passed_to_libc", &stats::ForeignFigures::passed_to_libc},
    {"late_calls", &stats::ForeignFigures::late_calls},
};

// Effects: reads a dump; "-" is standard input. Throws: CommandError (usage) that says what is wrong with it.
Dump read_dump(const std::string& file);

}  // namespace sluice::cli
