// The figures of a snapshot as tables, by their names in JSON. Open it to go through all figures; statistics.def has
// them.
#pragma once

#include <cstdint>
#include <string_view>

#include "stats/snapshot.hpp"

namespace sluice::stats {

enum class Unit : uint8_t { count, bytes };
enum class Source : uint8_t { state, counted, placed, freed, thread, process };

// Whether a figure is 0 unless exact counting is on.
constexpr bool is_counted(Source source) noexcept {
  return source == Source::counted || source == Source::placed || source == Source::freed;
}

template <typename Figures>
struct Figure {
  const char* name;
  uint64_t Figures::*member;
  Unit unit;
};

inline constexpr Figure<Snapshot> total_figures[] = {
#define SLUICE_FIGURE_TOTAL(name, source, unit, ...) {#name, &Snapshot::name, Unit::unit},
#include "os/statistics.def"
};
inline constexpr Figure<ResidentFigures> resident_figures[] = {
#define SLUICE_FIGURE_RESIDENT(name, source, unit, ...) {#name, &ResidentFigures::name, Unit::unit},
#include "os/statistics.def"
};
inline constexpr Figure<ClassFigures> class_figures[] = {
#define SLUICE_FIGURE_CLASS(name, source, unit, ...) {#name, &ClassFigures::name, Unit::unit},
#include "os/statistics.def"
};
inline constexpr Figure<LargeFigures> large_figures[] = {
#define SLUICE_FIGURE_LARGE(name, source, unit, ...) {#name, &LargeFigures::name, Unit::unit},
#include "os/statistics.def"
};
inline constexpr Figure<ArenaFigures> arena_figures[] = {
#define SLUICE_FIGURE_ARENA(name, source, unit, ...) {#name, &ArenaFigures::name, Unit::unit},
#include "os/statistics.def"
};
inline constexpr Figure<ThreadFigures> thread_figures[] = {
#define SLUICE_FIGURE_THREADS(name, source, unit, ...) {#name, &ThreadFigures::name, Unit::unit},
#include "os/statistics.def"
};
inline constexpr Figure<OsFigures> os_figures[] = {
#define SLUICE_FIGURE_OS(name, source, unit, ...) {#name, &OsFigures::name, Unit::unit},
#include "os/statistics.def"
};
inline constexpr Figure<ForeignFigures> foreign_figures[] = {
#define SLUICE_FIGURE_FOREIGN(name, source, unit, ...) {#name, &ForeignFigures::name, Unit::unit},
#include "os/statistics.def"
};

}  // namespace sluice::stats
