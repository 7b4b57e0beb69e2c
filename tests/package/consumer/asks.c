/* usage: asks VERSION|absent
 * Asks whether the process runs on Sluice, and exits with 0 when the answer is the one named: "absent", or Sluice of
 * that version, serving this program's malloc. */
#include <sluice/sluice.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t live_bytes(void) {
  sluice_stats stats;
  if (sluice_stats_get(&stats, sizeof stats) != 0) return 0;
  return stats.live_bytes;
}

int main(int argc, char** argv) {
  enum { size = 8 << 20 };
  const char* found = sluice_present() ? sluice_version() : "absent";
  uint64_t before, with, after;
  char* block;

  if (argc != 2 || strcmp(argv[1], found) != 0) {
    fprintf(stderr, "asks: found %s, expected %s\n", found, argc == 2 ? argv[1] : "one argument");
    return 1;
  }
  if (!sluice_present()) return 0;

  before = live_bytes();
  block = malloc(size);
  if (block == NULL) return 1;
  memset(block, 1, size);
  with = live_bytes();
  free(block);
  after = live_bytes();
  if (with < before + size || after + size > with) {
    fprintf(stderr, "asks: malloc is not Sluice's: live bytes %llu, %llu, %llu\n", (unsigned long long)before,
            (unsigned long long)with, (unsigned long long)after);
    return 1;
  }
  return 0;
}
