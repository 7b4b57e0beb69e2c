/* A program that uses so many MiB, in blocks of 200 bytes, and frees them: what it takes where the system uses huge
 * pages always, where a program asks for them, or never. Prints its peak resident KiB, how much of it was huge pages,
 * and the resident KiB after malloc_trim. Run by kernels_guest.sh, on Sluice and without. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { block_size = 200, most = 256 };

/* Returns: the KiB that a line of a file in /proc names; 0 where there is no such line. */
static unsigned long kilobytes(const char* path, const char* name) {
  FILE* const file = fopen(path, "re");
  char line[256];
  unsigned long found = 0;
  if (file == NULL) exit(1);
  while (fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, name, strlen(name)) == 0) found = strtoul(line + strlen(name), NULL, 10);
  fclose(file);
  return found;
}

int main(int arguments, char** argument) {
  static char* blocks[(most << 20) / block_size];
  const long megabytes = arguments == 2 ? strtol(argument[1], NULL, 10) : 0;
  if (megabytes < 1 || megabytes > most) return 1;
  const int count = (int)((megabytes << 20) / block_size);
  for (int i = 0; i < count; ++i) {
    blocks[i] = malloc(block_size);
    if (blocks[i] == NULL) return 1;
    memset(blocks[i], 1, block_size);
  }
  const unsigned long huge = kilobytes("/proc/self/smaps_rollup", "AnonHugePages:");
  for (int i = 0; i < count; ++i)
    free(blocks[i]);
  (void)malloc_trim(0);
  printf("%lu %lu %lu\n", kilobytes("/proc/self/status", "VmHWM:"), huge, kilobytes("/proc/self/status", "VmRSS:"));
  return 0;
}
