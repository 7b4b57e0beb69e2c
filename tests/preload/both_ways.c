/* Uses all of sluice/sluice.h in C, on Sluice and without it: the same binary runs both ways.
 * Usage: both_ways with|without. Ends with status 0 when everything held and the process runs on what was said. */
#define _GNU_SOURCE
#include <errno.h>
#include <sluice/sluice.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

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

/* A profile that starts in a program with a thread that has its blocks at hand already. */
static mtx_t turn_lock;
static cnd_t turn_changed;
static int turn;

static void wait_for_turn(int wanted) {
  mtx_lock(&turn_lock);
  while (turn != wanted)
    cnd_wait(&turn_changed, &turn_lock);
  mtx_unlock(&turn_lock);
}
static void next_turn(int next) {
  mtx_lock(&turn_lock);
  turn = next;
  cnd_broadcast(&turn_changed);
  mtx_unlock(&turn_lock);
}

static void* volatile sink;
static int allocate_in_turn(void* unused) {
  (void)unused;
  for (int i = 0; i < 100; ++i) {
    sink = malloc(12345);
    free(sink);
  }
  next_turn(1);
  wait_for_turn(2);
  for (int i = 0; i < 100; ++i) {
    sink = malloc(12345);
    free(sink);
  }
  return 0;
}

static size_t size_of_file(const char* path) {
  FILE* const file = fopen(path, "rb");
  if (file == NULL) return 0;
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  fclose(file);
  return size > 0 ? (size_t)size : 0;
}

static void use_profile(void) {
  char path[] = "/tmp/both_ways.XXXXXX";
  thrd_t thread;
  const int file = mkstemp(path);
  expect(file >= 0, "no file");
  mtx_init(&turn_lock, mtx_plain);
  cnd_init(&turn_changed);
  expect(sluice_profile_stop() == -1 && errno == ESRCH, "a profile that was never started was stopped");
  expect(sluice_profile_dump(path) == -1 && errno == ESRCH, "a profile that was never started was written");
  if (thrd_create(&thread, allocate_in_turn, NULL) != thrd_success) abort();
  wait_for_turn(1);
  expect(sluice_profile_start(1) == 0, "the profile was not started");
  expect(sluice_profile_start(1) == -1 && errno == EBUSY, "the profile was started twice");
  expect(sluice_profile_dump(path) == 0, "the profile was not written");
  const size_t without = size_of_file(path);
  next_turn(2);
  thrd_join(thread, NULL);
  expect(sluice_profile_dump(path) == 0, "the profile was not written again");
  expect(without > 0 && size_of_file(path) > without, "what the thread allocates is not in the profile");
  expect(sluice_profile_stop() == 0, "the profile was not stopped");
  expect(sluice_profile_start(0) == 0 && sluice_profile_stop() == 0, "the profile was not started again");
  expect(sluice_profile_dump("/nowhere/profile") == -1 && errno == ENOENT, "a folder that is not there was written to");
  close(file);
  remove(path);
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
    use_profile();
    expect(strcmp(sluice_version(), SLUICE_VERSION) == 0, "header and library differ in their version");
    expect(sluice_stats_get(&stats, sizeof stats) == 0 && stats.live_bytes > 0, "no statistics");
    sluice_idle();
    expect(sluice_stats_get(&stats, sizeof stats) == 0 && stats.retained_bytes == 0,
           "an idle program keeps free pages");
  }
  return failures == 0 ? 0 : 1;
}
