/* Where the threads of a process count how long its calls take, for libsluice-latency.so. Open it when counts are lost.
 *
 * Every thread has counters of its own. Those of a thread that has ended are taken over with what they hold by the next
 * one, so that no count is lost. What a thread calls after that, while it ends, goes to counters that all share.
 */
#ifndef SLUICE_MEASURE_LATENCY_COUNTERS_H
#define SLUICE_MEASURE_LATENCY_COUNTERS_H

#include <stdint.h>

#include "latency_format.h"

struct LatencyHistogram {
  uint64_t calls[latency_buckets];
  uint64_t sum, maximum;
};

struct LatencyCounters;

/* Returns: whether there is memory for counting, and a way to learn that a thread ends. */
int latency_counters_start(void);

/* Returns: the counters of this thread, never NULL; free of locks, as a signal handler may be calling. */
struct LatencyCounters* latency_take_counters(void);

void latency_count(struct LatencyCounters* counters, enum LatencyKind kind, uint64_t ticks);

/* Returns: what this thread has counted. */
struct LatencyHistogram* latency_histogram(struct LatencyCounters* counters, enum LatencyKind kind);

/* Effects: adds what all threads have counted to a histogram of zeros; they may be counting still. */
void latency_add_up(enum LatencyKind kind, struct LatencyHistogram* total);

/* Effects: begins anew in a child of fork, which has this thread only. */
void latency_counters_begin_child(void);

#endif
