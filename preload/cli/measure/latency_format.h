/* What libsluice-latency.so and the reader of its file both know: the kinds of calls, the buckets that times are
 * counted in, and the record of a process. Open it to change the precision or the format.
 *
 * A record is five lines of text, with numbers in decimals and times in ticks of the timer:
 *
 *   latency PID TIMER STEP OVERHEAD TICKS NANOSECONDS
 *   malloc CALLS SUM MAXIMUM BUCKET:CALLS...         buckets ascending, those without calls left out
 *   free ...
 *   realloc ...
 *   end PID                                          without it the record has been cut off
 *
 * Times are multiples of STEP, and have OVERHEAD in them: what measuring adds to a call, in thousandths of a tick.
 * TICKS and NANOSECONDS are the same span by the timer and by the clock.
 */
#ifndef SLUICE_MEASURE_LATENCY_FORMAT_H
#define SLUICE_MEASURE_LATENCY_FORMAT_H

#include <stdint.h>

enum LatencyKind {
  latency_allocate, /* what only allocates: malloc, calloc, operator new, ... */
  latency_release,  /* what only frees */
  latency_resize,   /* realloc and reallocarray, whatever they come to */
  latency_kinds
};

static const char* const latency_kind_names[latency_kinds] = {"malloc", "free", "realloc"};

/* Log-linear buckets: each power of two from 256 on is divided into 128, so that a bucket is at most 1/128 of its
 * values wide, and 1/64 of what is left of them when up to 128 ticks of overhead are subtracted; below 256 each value
 * has its own. Values from 2^40 on, some minutes, are counted in the last one. */
enum {
  latency_parts_shift = 7,
  latency_limit_shift = 40,
  latency_buckets = (latency_limit_shift - latency_parts_shift + 1) << latency_parts_shift
};

/* Returns: the bucket that a value is counted in, below latency_buckets. */
static inline unsigned latency_bucket_of(uint64_t value) {
  const uint64_t largest = (UINT64_C(1) << latency_limit_shift) - 1;
  if (value > largest) value = largest;
  const unsigned parts = 1u << latency_parts_shift;
  const unsigned shift = 63u - (unsigned)latency_parts_shift - (unsigned)__builtin_clzll(value | parts);
  return shift * parts + (unsigned)(value >> shift);
}

/* Returns: the least value of a bucket, or 2^40 for the one after the last. */
static inline uint64_t latency_least_of(unsigned bucket) {
  const unsigned parts = 1u << latency_parts_shift;
  const unsigned shift = bucket < parts ? 0 : bucket / parts - 1;
  return (uint64_t)(bucket - shift * parts) << shift;
}

#endif
