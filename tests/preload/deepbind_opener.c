/* A library that opens its plug-in under names that mean something only to the loader that knows who asks: one that the
 * RUNPATH of this library leads to, and one relative to this library. The program's own paths lead nowhere. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

void* opener_open(const char* how, int mode) {
  switch (how[0]) {
    case 'r': /* by RUNPATH */
      return dlopen("deepbind_plugin.so", mode);
    case 'o': /* by origin */
      return dlopen("$ORIGIN/inner/deepbind_plugin.so", mode);
    case 'n': /* by RUNPATH, into the namespace of the program */
      return dlmopen(LM_ID_BASE, "deepbind_plugin.so", mode);
    default:
      return NULL;
  }
}
