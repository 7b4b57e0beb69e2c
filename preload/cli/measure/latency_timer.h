/* The timer of libsluice-latency.so: the processor's time stamp counter where it is steady, else the clock. Open it
 * when times are implausible. */
#ifndef SLUICE_MEASURE_LATENCY_TIMER_H
#define SLUICE_MEASURE_LATENCY_TIMER_H

#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* Ticks are those of the counter, else nanoseconds of the clock. Chosen while there is one thread. */
extern __attribute__((visibility("hidden"))) int latency_has_counter;

/* The same moment by the timer and by the clock. */
struct LatencyInstant {
  uint64_t ticks, nanoseconds;
};

/* Effects: sets latency_has_counter. */
void latency_choose_timer(void);

struct LatencyInstant latency_instant(void);

/* Returns: what all times are multiples of, in ticks; on some processors the counter moves on by many at once. */
uint64_t latency_timer_step(void);

static inline uint64_t latency_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The fences keep all that stands before a reading before it, and all that follows behind it. */
static inline uint64_t latency_ticks_before(void) {
#if defined(__x86_64__)
  if (latency_has_counter) {
    _mm_lfence();
    const uint64_t now = __rdtsc();
    _mm_lfence();
    return now;
  }
#endif
  return latency_clock();
}

static inline uint64_t latency_ticks_after(void) {
#if defined(__x86_64__)
  if (latency_has_counter) {
    unsigned processor;
    const uint64_t now = __rdtscp(&processor);
    _mm_lfence();
    return now;
  }
#endif
  return latency_clock();
}

#endif
