/* Chooses the timer of libsluice-latency.so and ties it to the clock. Open it with latency_timer.h. */
#include "latency_timer.h"

#include <stddef.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

int latency_has_counter;

/* From the try that was disturbed least. */
struct LatencyInstant latency_instant(void) {
  struct LatencyInstant best = {0, 0};
  uint64_t shortest = UINT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const uint64_t before = latency_ticks_before();
    const uint64_t now = latency_clock();
    const uint64_t taken = latency_ticks_after() - before;
    if (taken >= shortest) continue;
    shortest = taken;
    best.ticks = latency_has_counter ? before + taken / 2 : now;
    best.nanoseconds = now;
  }
  return best;
}

#if defined(__x86_64__)
/* Returns: whether the counter has kept step with the clock to a thousandth over some milliseconds. */
static int is_steady(void) {
  double slowest = 0, fastest = 0;
  struct LatencyInstant earlier = latency_instant();
  for (int i = 0; i < 5; ++i) {
    while (latency_clock() < earlier.nanoseconds + 1000000) {
    }
    const struct LatencyInstant now = latency_instant();
    const double rate = (double)(now.ticks - earlier.ticks) / (double)(now.nanoseconds - earlier.nanoseconds);
    if (i == 0 || rate < slowest) slowest = rate;
    if (i == 0 || rate > fastest) fastest = rate;
    earlier = now;
  }
  return slowest > 0 && fastest < slowest * 1.001;
}

void latency_choose_timer(void) {
  unsigned a, b, c, d;
  const int has_rdtscp = __get_cpuid(0x80000001, &a, &b, &c, &d) && (d >> 27 & 1);
  if (!has_rdtscp) return;
  latency_has_counter = 1;
  const int is_invariant = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
  if (!is_invariant && !is_steady()) latency_has_counter = 0;
}
#else
void latency_choose_timer(void) {}
#endif

uint64_t latency_timer_step(void) {
  uint64_t step = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t before = latency_ticks_before();
    uint64_t rest = latency_ticks_after() - before;
    while (rest != 0) { /* the greatest common divisor */
      const uint64_t divided = step;
      step = rest;
      rest = divided % rest;
    }
  }
  return step != 0 ? step : 1;
}
