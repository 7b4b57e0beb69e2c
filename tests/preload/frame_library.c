/* A library that uses frames and, where there are any, scopes; loaded and unloaded by frame_loading. */
#include <sluice/sluice.h>
#include <stdlib.h>
#include <string.h>

/* Returns the number of blocks that changed. What it leaves in frame memory ends with the thread. */
int library_damage(void);
int library_damage(void) {
  enum { count = 300 };
  unsigned char* in_frame[count];
  unsigned char* in_scope[count];
  sluice_scope scope;
  int damage = 0;
  (void)sluice_frame_alloc(100, 8);
  const sluice_mark mark = sluice_frame_mark();
  if (sluice_present()) (void)sluice_scope_enter(&scope, SLUICE_ROUTE);
  for (size_t i = 0; i < count; ++i) {
    in_frame[i] = sluice_frame_alloc(i * 3 + 1, 8);
    in_scope[i] = malloc(i + 1);
    memset(in_frame[i], (int)i, i * 3 + 1);
    memset(in_scope[i], (int)i, i + 1);
  }
  if (sluice_present()) sluice_scope_leave(&scope);
  for (size_t i = 0; i < count; ++i) {
    damage += in_frame[i][0] != (unsigned char)i || in_frame[i][i * 3] != (unsigned char)i;
    damage += in_scope[i][0] != (unsigned char)i || in_scope[i][i] != (unsigned char)i;
    free(in_scope[i]);
  }
  sluice_frame_rewind(mark);
  return damage;
}
