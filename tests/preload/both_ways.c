/* Uses all of sluice/sluice.h in C, on Sluice and without it: the same binary runs both ways.
 * Usage: both_ways with|without. Ends with status 0 when everything held and the process runs on what was said. */
#include <sluice/sluice.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

static int failures;

static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "both_ways: %s\n", what);
  ++failures;
}

/* A list of lines in frame memory. */
struct line {
  struct line* next;
  size_t length;
  char text[];
};

static struct line* add_line(struct line* before, size_t length, char with) {
  struct line* line = sluice_frame_alloc(sizeof(struct line) + length, _Alignof(struct line));
  if (line == NULL) abort();
  line->next = before;
  line->length = length;
  memset(line->text, with, length);
  return line;
}

static int lines_hold(const struct line* line, int count) {
  for (; line != NULL; line = line->next) {
    --count;
    for (size_t i = 0; i < line->length; ++i) {
      if (line->text[i] != (char)('a' + count % 26)) return 0;
    }
  }
  return count == 0;
}

static void use_frames(void) {
  for (int round = 0; round < 20; ++round) {
    const sluice_mark mark = sluice_frame_mark();
    struct line* list = NULL;
    for (int i = 0; i < 3000; ++i) {
      list = add_line(list, (size_t)(i * 7 % 150), (char)('a' + i % 26));
      const sluice_mark inner = sluice_frame_mark();
      char* text = NULL;
      size_t size = 0;
      for (int step = 0; step < 5; ++step) {
        text = sluice_frame_grow(text, size, size + 13);
        if (text == NULL) abort();
        memset(text + size, 'z', 13);
        size += 13;
      }
      sluice_frame_rewind(inner);
    }
    expect(lines_hold(list, 3000), "lines in frame memory changed");
    char* const large = sluice_frame_alloc(1 << 20, 64);
    expect(large != NULL && (uintptr_t)large % 64 == 0, "no large block in frame memory");
    if (large != NULL) memset(large, 1, 1 << 20);
    sluice_frame_rewind(mark);
    expect(sluice_frame_mark().opaque[0] == mark.opaque[0], "a rewind did not come back to its mark");
  }
}

static int use_frames_on_thread(void* unused) {
  (void)unused;
  use_frames();
  (void)sluice_frame_alloc(100000, 1); /* left to the end of the thread */
  return 0;
}

static void use_scopes(void) {
  char* escapes[200];
  for (int round = 0; round < 20; ++round) {
    sluice_scope scope;
    expect(sluice_scope_enter(&scope, SLUICE_ROUTE) == 0, "no scope");
    for (int i = 0; i < 200; ++i) {
      escapes[i] = malloc((size_t)i + 1);
      memset(escapes[i], i, (size_t)i + 1);
      free(calloc(10, 10));
    }
    sluice_scope_leave(&scope);
    for (int i = 0; i < 200; ++i) {
      expect(escapes[i][0] == (char)i && escapes[i][i] == (char)i, "a block of a scope changed");
      free(escapes[i]);
    }
  }
}

int main(int argc, char** argv) {
  if (argc != 2 || (strcmp(argv[1], "with") != 0 && strcmp(argv[1], "without") != 0)) {
    fputs("usage: both_ways with|without\n", stderr);
    return 2;
  }
  expect(sluice_present() == (strcmp(argv[1], "with") == 0), "sluice_present() does not say what was said");
  use_frames();
  for (int i = 0; i < 50; ++i) {
    thrd_t thread;
    if (thrd_create(&thread, use_frames_on_thread, NULL) != thrd_success) return 1;
    thrd_join(thread, NULL);
  }
  if (sluice_present()) {
    sluice_stats stats;
    use_scopes();
    expect(strcmp(sluice_version(), SLUICE_VERSION) == 0, "header and library differ in their version");
    expect(sluice_stats_get(&stats, sizeof stats) == 0 && stats.live_bytes > 0, "no statistics");
    sluice_idle();
    expect(sluice_stats_get(&stats, sizeof stats) == 0 && stats.retained_bytes == 0,
           "an idle program keeps free pages");
  }
  return failures == 0 ? 0 : 1;
}
