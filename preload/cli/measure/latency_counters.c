/* Counters of calls by how long they took. Open it with latency_counters.h. */
#include "latency_counters.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define LOAD(from) __atomic_load_n(from, __ATOMIC_RELAXED)
#define STORE(to, value) __atomic_store_n(to, value, __ATOMIC_RELAXED)

/* Life-cycle: mapped for a thread, put on the list for good; taken by one thread after another. */
struct LatencyCounters {
  struct LatencyCounters* following;
  int is_taken;
  struct LatencyHistogram histograms[latency_kinds];
};

static struct LatencyCounters* list; /* of all counters; grows at its head */
static struct LatencyCounters* shared;
static pthread_key_t ending; /* tells when a thread ends */

/* Of this thread; NULL before its first call. */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct LatencyCounters* own;

/* Release and acquire: who finds counters on the list finds what they began with. */
static struct LatencyCounters* first_counters(void) {
  return __atomic_load_n(&list, __ATOMIC_ACQUIRE);
}

/* Returns: counters that are taken and on the list, or NULL without memory. */
static struct LatencyCounters* mapped_counters(void) {
  void* const memory =
      mmap(NULL, sizeof(struct LatencyCounters), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  struct LatencyCounters* const counters = memory;
  counters->is_taken = 1;
  counters->following = LOAD(&list);
  while (!__atomic_compare_exchange_n(&list, &counters->following, counters, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
  return counters;
}

/* Release: pairs with the acquire in taken_counters(), so that a thread adds to all that the earlier one has counted.
 */
static void give_back(struct LatencyCounters* counters) {
  __atomic_store_n(&counters->is_taken, 0, __ATOMIC_RELEASE);
}

/* The thread ends; what it still calls is counted with the shared counters. */
static void leave(void* counters) {
  own = shared;
  give_back(counters);
}

static struct LatencyCounters* taken_counters(void) {
  for (struct LatencyCounters* each = first_counters(); each != NULL; each = each->following) {
    int is_taken = 0;
    if (__atomic_compare_exchange_n(&each->is_taken, &is_taken, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return each;
  }
  return mapped_counters();
}

int latency_counters_start(void) {
  shared = mapped_counters();
  return shared != NULL && pthread_key_create(&ending, leave) == 0;
}

/* The first call of a thread; it may be one that sets errno, or asks for it. */
__attribute__((noinline, cold)) static struct LatencyCounters* new_counters(void) {
  const int error = errno;
  own = taken_counters();
  if (own != NULL && pthread_setspecific(ending, own) != 0) {
    give_back(own);
    own = NULL;
  }
  if (own == NULL) own = shared;
  errno = error;
  return own;
}

struct LatencyCounters* latency_take_counters(void) {
  return own != NULL ? own : new_counters();
}

static void add(uint64_t* counter, uint64_t amount, int are_shared) {
  if (are_shared)
    __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
  else
    STORE(counter, LOAD(counter) + amount); /* read by the thread that exits */
}

void latency_count(struct LatencyCounters* counters, enum LatencyKind kind, uint64_t ticks) {
  struct LatencyHistogram* const histogram = &counters->histograms[kind];
  const int are_shared = counters == shared;
  if ((int64_t)ticks < 0) ticks = 0; /* the counter of another processor may be a little behind */
  add(&histogram->calls[latency_bucket_of(ticks)], 1, are_shared);
  add(&histogram->sum, ticks, are_shared);
  uint64_t maximum = LOAD(&histogram->maximum);
  while (ticks > maximum &&
         !__atomic_compare_exchange_n(&histogram->maximum, &maximum, ticks, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

struct LatencyHistogram* latency_histogram(struct LatencyCounters* counters, enum LatencyKind kind) {
  return &counters->histograms[kind];
}

void latency_add_up(enum LatencyKind kind, struct LatencyHistogram* total) {
  for (struct LatencyCounters* each = first_counters(); each != NULL; each = each->following) {
    struct LatencyHistogram* const histogram = &each->histograms[kind];
    for (unsigned bucket = 0; bucket < latency_buckets; ++bucket)
      total->calls[bucket] += LOAD(&histogram->calls[bucket]);
    total->sum += LOAD(&histogram->sum);
    const uint64_t maximum = LOAD(&histogram->maximum);
    if (maximum > total->maximum) total->maximum = maximum;
  }
}

void latency_counters_begin_child(void) {
  for (struct LatencyCounters* each = first_counters(); each != NULL; each = each->following) {
    struct LatencyCounters* const following = each->following;
    if (madvise(each, sizeof *each, MADV_DONTNEED) != 0) memset(each, 0, sizeof *each); /* locked in memory */
    each->following = following;
    each->is_taken = each == own || each == shared;
  }
}
