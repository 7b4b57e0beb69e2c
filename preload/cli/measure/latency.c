/* libsluice-latency.so: preloaded before an allocator, it measures how long each call of malloc, free and realloc
 * takes. Open it to change what is measured; latency.hpp reads what it writes.
 *
 * LIBSLUICE_LATENCY names a file by its whole path, to which each process appends a record when it exits. There is none
 * after _exit, a signal, or for what was done before exec. Without the variable calls are passed on unmeasured.
 *
 * A call is counted once, with the time of the outermost function: operator new may call malloc, which is a part of it.
 * A call that throws takes until the exception has passed. Calls of free without a block are passed on unmeasured.
 * What leaves a call by longjmp leaves its thread unmeasured from then on. A library with an unwinder of its own
 * (-static-libgcc), whose operator new follows this one, cannot throw through it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "append.h"
#include "latency_counters.h"
#include "latency_timer.h"

#define EXPORT __attribute__((visibility("default")))
#define SELDOM(condition) __builtin_expect(!!(condition), 0)
#define LOAD(from) __atomic_load_n(from, __ATOMIC_RELAXED)
#define STORE(to, value) __atomic_store_n(to, value, __ATOMIC_RELAXED)

struct Call {
  struct LatencyCounters* counters; /* NULL for a call that is not measured */
  enum LatencyKind kind;
  uint64_t start;
};

static char path[4096]; /* of the file; set before is_measuring */
static int is_measuring;
static int is_ready;                /* whether calls are measured has been decided, while there is one thread */
static struct LatencyInstant begun; /* when measuring began */
static uint64_t step;               /* of the timer, in ticks */
static uint64_t overhead;           /* of measuring a call, in thousandths of a tick */

static _Thread_local __attribute__((tls_model("initial-exec"))) int is_inside; /* of a measured call */

/* ---- A measured call ---- */

static inline struct Call begin(enum LatencyKind kind, int is_wanted) {
  struct Call call = {NULL, kind, 0};
  if (!is_measuring || !is_wanted || is_inside) return call;
  is_inside = 1;
  call.counters = latency_take_counters();
  call.start = latency_ticks_before();
  return call;
}

static inline void finish(struct Call* call) {
  if (call->counters == NULL) return;
  latency_count(call->counters, call->kind, latency_ticks_after() - call->start);
  is_inside = 0;
}

/* ---- What follows this library ---- */

enum {
#define SLUICE_LATENCY_CALL(kind, type, name, parameters, arguments, missing) index_##name,
#include "latency_calls.def"
#undef SLUICE_LATENCY_CALL
  names_count,
  index_nothing = names_count, /* an empty function, whose call is the overhead */
  functions_count
};

static const char* const names[names_count] = {
#define SLUICE_LATENCY_CALL(kind, type, name, parameters, arguments, missing) #name,
#include "latency_calls.def"
#undef SLUICE_LATENCY_CALL
};

static void* functions[functions_count];
static char is_missing[functions_count]; /* no library has it */

static void prepare(void);

/* Returns: a handle, to be closed, of the library that holds an address; NULL for this one. */
static void* library_of(const void* address) {
  Dl_info info, own;
  if (dladdr(address, &info) == 0 || dladdr(functions, &own) == 0 || info.dli_fbase == own.dli_fbase) return NULL;
  return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

/* Effects: looks for an operator of C++ where no library that follows has it: the program is not C++, but has loaded a
 * library that is. Either that library has it, or one that it needs, and what has one operator is asked first for the
 * others, as they may call each other by way of this library. It stays loaded. */
static void find_behind(int index, const void* caller) {
  static void* runtime;
  const int was_inside = is_inside;
  is_inside = 1; /* the calls that this makes are not the program's */
  void* found = LOAD(&runtime) != NULL ? dlsym(LOAD(&runtime), names[index]) : NULL;
  void* const library = found == NULL ? library_of(caller) : NULL;
  if (library != NULL) {
    found = dlsym(library, names[index]);
    void* const holder = found != NULL ? library_of(found) : NULL;
    if (holder == NULL) found = NULL;
    if (holder != NULL) STORE(&runtime, holder);
    STORE(&is_missing[index], found == NULL);
    dlclose(library);
  }
  dlerror(); /* it is no error of the program */
  is_inside = was_inside;
  STORE(&functions[index], found);
}

__attribute__((noinline, cold)) static void* find(int index, const void* caller) {
  const int error = errno;
  if (!is_ready) prepare();
  if (is_ready && LOAD(&functions[index]) == NULL && !LOAD(&is_missing[index]) && strncmp(names[index], "_Z", 2) == 0)
    find_behind(index, caller);
  errno = error;
  return LOAD(&functions[index]);
}

/* Returns: what follows, or NULL where there is nothing. */
static inline void* function(int index, const void* caller) {
  void* const found = LOAD(&functions[index]);
  return SELDOM(found == NULL || !is_ready) ? find(index, caller) : found;
}

/* What the dynamic linker allocates while the functions are looked for; never given back. */
static char early_memory[1 << 16] __attribute__((aligned(64)));
static size_t early_used;

static inline int is_early(const void* block) {
  return (uintptr_t)block - (uintptr_t)early_memory < sizeof early_memory;
}

static void* early_block(size_t alignment, size_t size) {
  const size_t start = (early_used + alignment - 1) & ~(alignment - 1);
  if (alignment > 4096 || start > sizeof early_memory || size > sizeof early_memory - start) {
    errno = ENOMEM;
    return NULL;
  }
  early_used = start + size;
  return early_memory + start;
}

static size_t product(size_t count, size_t size) {
  size_t bytes;
  return __builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes;
}

static void* early_resized(void* block, size_t size) {
  void* const larger = malloc(size);
  if (larger == NULL || block == NULL) return larger;
  const size_t readable = (size_t)(early_memory + sizeof early_memory - (char*)block);
  return memcpy(larger, block, size < readable ? size : readable);
}

/* operator new where nobody is known to have it. */
static void* plain_nothrow_new(size_t alignment, size_t size) {
  if (size == 0) size = 1;
  return alignment == 0 ? malloc(size) : memalign(alignment, size);
}

static void* plain_new(size_t alignment, size_t size) {
  void* const block = plain_nothrow_new(alignment, size);
  if (block == NULL) abort(); /* there is nobody to throw */
  return block;
}

/* ---- The functions ---- */

#define IS_EARLY_allocate 0
#define IS_EARLY_release is_early(block)
#define IS_EARLY_resize is_early(block)
#define IS_WANTED_allocate 1
#define IS_WANTED_release (block != NULL)
#define IS_WANTED_resize 1

#define MEASURED(kind, type, name, parameters, arguments, missing)                               \
  {                                                                                              \
    void* const next = function(index_##name, __builtin_return_address(0));                      \
    if (SELDOM(next == NULL || IS_EARLY_##kind)) return missing;                                 \
    struct Call call __attribute__((cleanup(finish))) = begin(latency_##kind, IS_WANTED_##kind); \
    (void)call;                                                                                  \
    return ((type(*) parameters)next)arguments;                                                  \
  }
#define SLUICE_LATENCY_CALL(kind, type, name, parameters, arguments, missing) \
  EXPORT type name parameters MEASURED(kind, type, name, parameters, arguments, missing)
#include "latency_calls.def"
#undef SLUICE_LATENCY_CALL

static void* empty_function(size_t size) {
  (void)size;
  return NULL;
}

__attribute__((noinline)) static void* nothing(size_t size)
    MEASURED(allocate, void*, nothing, (size_t size), (size), NULL)

    /* Returns: where a call of a function goes from here, for the probe. */
    EXPORT void* libsluice_latency_next(const char* name) {
  for (int i = 0; i < names_count; ++i)
    if (strcmp(names[i], name) == 0) return LOAD(&functions[i]);
  return NULL;
}

/* ---- Start ---- */

/* Returns: what measuring adds to a call, in thousandths of a tick: the mean of calls of an empty function, which are
 * measured as all others are, without those that were disturbed. A mean can be less than a step of the timer. */
static uint64_t measured_overhead(void) {
  enum { calls = 4001 };
  for (int i = 0; i < calls; ++i)
    nothing(0);
  struct LatencyHistogram* const histogram = latency_histogram(latency_take_counters(), latency_allocate);
  uint64_t counted = 0, sum = 0;
  unsigned limit = latency_buckets;
  for (unsigned bucket = 0; bucket < limit; ++bucket) {
    const int is_below_median = counted <= calls / 2;
    counted += histogram->calls[bucket];
    sum += histogram->calls[bucket] * latency_least_of(bucket);
    if (is_below_median && counted > calls / 2) limit = latency_bucket_of(2 * latency_least_of(bucket) + 1);
  }
  memset(histogram, 0, sizeof *histogram);
  return sum * 1000 / counted;
}

static void start_measuring(void) {
  const char* const wanted = secure_getenv("LIBSLUICE_LATENCY");
  if (wanted == NULL || *wanted == '\0' || strlen(wanted) >= sizeof path) return;
  if (!latency_counters_start()) return;
  strcpy(path, wanted);
  latency_choose_timer();
  begun = latency_instant();
  step = latency_timer_step();
  is_measuring = 1;
  overhead = measured_overhead();
}

/* Effects: finds what follows, and decides about measuring as soon as the environment is there, which it is not when
 * the dynamic linker makes the first calls. They come here again while this is under way. */
static void prepare(void) {
  static int is_under_way, is_resolved;
  if (is_under_way) return;
  is_under_way = 1;
  for (int i = 0; i < names_count && !is_resolved; ++i)
    STORE(&functions[i], dlsym(RTLD_NEXT, names[i]));
  if (!is_resolved) dlerror();
  functions[index_nothing] = (void*)empty_function;
  is_resolved = 1;
  if (environ != NULL) {
    is_ready = 1;
    start_measuring();
  }
  is_under_way = 0;
}

/* The handler is not registered with the first call, which may come from inside pthread_atfork(). */
__attribute__((constructor)) static void start(void) {
  if (!is_ready) prepare();
  if (is_measuring) pthread_atfork(NULL, NULL, latency_counters_begin_child);
}

/* ---- End ---- */

static char record[latency_kinds * (latency_buckets * sizeof "2303:18446744073709551615" + 128) + 256];
static size_t record_length;

__attribute__((format(printf, 1, 2))) static void print(const char* format, ...) {
  va_list values;
  va_start(values, format);
  record_length += (size_t)vsnprintf(record + record_length, sizeof record - record_length, format, values);
  va_end(values);
}

static void print_kind(enum LatencyKind kind) {
  static struct LatencyHistogram total;
  memset(&total, 0, sizeof total);
  latency_add_up(kind, &total);
  uint64_t calls = 0;
  for (unsigned bucket = 0; bucket < latency_buckets; ++bucket)
    calls += total.calls[bucket];
  print("%s %" PRIu64 " %" PRIu64 " %" PRIu64, latency_kind_names[kind], calls, total.sum, total.maximum);
  for (unsigned bucket = 0; bucket < latency_buckets; ++bucket)
    if (total.calls[bucket] != 0) print(" %u:%" PRIu64, bucket, total.calls[bucket]);
  print("\n");
}

__attribute__((destructor)) static void end(void) {
  if (!is_measuring) return;
  const struct LatencyInstant now = latency_instant();
  const int process = (int)getpid();
  print("latency %d %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", process,
        latency_has_counter ? "tsc" : "clock", step, overhead, now.ticks - begun.ticks,
        now.nanoseconds - begun.nanoseconds);
  print_kind(latency_allocate);
  print_kind(latency_release);
  print_kind(latency_resize);
  print("end %d\n", process);
  append_record(path, record, record_length);
}
