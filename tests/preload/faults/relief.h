/* How a subject tells refuse_calls from when on its calls count, and from when on none is to be refused any more. Open
 * it to write another subject. */
#ifndef SLUICE_TESTS_RELIEF_H
#define SLUICE_TESTS_RELIEF_H

#include <stddef.h>
#include <sys/mman.h>

/* Advice that no kernel knows: without refuse_calls the calls fail, and nothing happens. */
enum { advice_from_now_on = 4710, advice_no_more = 4711 };

static inline void ask_for_refusals(void) {
  (void)madvise(NULL, 0, advice_from_now_on);
}
static inline void ask_for_relief(void) {
  (void)madvise(NULL, 0, advice_no_more);
}

#endif
