// See macho_start.hpp. Nothing here is needed for the first allocation, which may come earlier: see cache::attach.
#include "macho_start.hpp"

#include "base/options.hpp"
#include "guarded/pool.hpp"
#include "guarded/report.hpp"
#include "heap/background.hpp"
#include "heap/heap.hpp"
#include "heap/reuse.hpp"
#include "heap/sampling.hpp"
#include "macho_zone.hpp"
#include "stats/report.hpp"

namespace sluice::macho {

constinit std::atomic<bool> has_started{false};

void start() noexcept {
  if (has_started.exchange(true, std::memory_order_relaxed)) return;
  cache::finish_start();
  heap::foreign_hooks = {zone::free_of_others, zone::usable_size_of_others, nullptr};
  zone::install();
  background::start_with_caches();
  stats::start_report();
  if (options.guard_rate != 0) {
    guarded::set_slots(options.guard_slots);
    guarded::start_reports();
    sampling::start(options.guard_rate);
  }
}

namespace {

__attribute__((constructor)) void start_image() {
  start();
}

__attribute__((destructor)) void finish() {
  if constexpr (checks_blocks) hardened::check_waiting();
  stats::print_report_at_exit();
  guarded::report_leaks();
}

}  // namespace
}  // namespace sluice::macho
