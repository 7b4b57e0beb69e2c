// Stands for libsluice.so in tests of `sluice profile -- PROGRAM`: at its end a process copies the file that
// FAKE_PROFILE names to where SLUICE_PROFILE says, with its number, but for a program whose name has "silent" in it.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void copy(const char* from, const char* to) {
  char buffer[4096];
  size_t got;
  FILE* in = fopen(from, "rb");
  FILE* out = fopen(to, "wb");
  if (in == NULL || out == NULL) _exit(99);
  while ((got = fread(buffer, 1, sizeof buffer, in)) > 0)
    fwrite(buffer, 1, got, out);
  fclose(in);
  fclose(out);
}

__attribute__((destructor)) static void write_profile(void) {
  const char* const pattern = getenv("SLUICE_PROFILE");
  const char* const source = getenv("FAKE_PROFILE");
  const char* const note = getenv("FAKE_NOTE");
  if (pattern == NULL || source == NULL || strstr(program_invocation_name, "silent") != NULL) return;
  const char* const number = strstr(pattern, "%p");
  if (number == NULL) _exit(98);
  char path[4096], from[4096];
  snprintf(path, sizeof path, "%.*s%d%s", (int)(number - pattern), pattern, (int)getpid(), number + 2);
  snprintf(from, sizeof from, "%s.%s", source, program_invocation_short_name);
  copy(access(from, R_OK) == 0 ? from : source, path);
  if (note != NULL) {
    FILE* out = fopen(note, "w");
    if (out == NULL) _exit(97);
    const char* const rate = getenv("SLUICE_PROFILE_RATE");
    fprintf(out, "%s %s\n", path, rate == NULL ? "default" : rate);
    fclose(out);
  }
}
