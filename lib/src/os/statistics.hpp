// Picks figures out of statistics.def by their source, for those who make a struct or a sum of them. Open it to add a
// source.
//
//   SLUICE_IF_THREAD(source, …)   its last arguments where the source is `thread`, else nothing; the others likewise
#pragma once

#define SLUICE_IF_THREAD(source, ...) SLUICE_IF_THREAD_##source(__VA_ARGS__)
#define SLUICE_IF_THREAD_state(...)
#define SLUICE_IF_THREAD_counted(...)
#define SLUICE_IF_THREAD_placed(...)
#define SLUICE_IF_THREAD_freed(...)
#define SLUICE_IF_THREAD_thread(...) __VA_ARGS__
#define SLUICE_IF_THREAD_process(...)

#define SLUICE_IF_PLACED(source, ...) SLUICE_IF_PLACED_##source(__VA_ARGS__)
#define SLUICE_IF_PLACED_state(...)
#define SLUICE_IF_PLACED_counted(...)
#define SLUICE_IF_PLACED_placed(...) __VA_ARGS__
#define SLUICE_IF_PLACED_freed(...)
#define SLUICE_IF_PLACED_thread(...)
#define SLUICE_IF_PLACED_process(...)

#define SLUICE_IF_FREED(source, ...) SLUICE_IF_FREED_##source(__VA_ARGS__)
#define SLUICE_IF_FREED_state(...)
#define SLUICE_IF_FREED_counted(...)
#define SLUICE_IF_FREED_placed(...)
#define SLUICE_IF_FREED_freed(...) __VA_ARGS__
#define SLUICE_IF_FREED_thread(...)
#define SLUICE_IF_FREED_process(...)

// Members of the counters of allocations and frees.
#define SLUICE_EXACT_COUNTER(name, source, ...)            \
  SLUICE_IF_PLACED(source, std::atomic<uint64_t> name{0};) \
  SLUICE_IF_FREED(source, std::atomic<uint64_t> name{0};)
