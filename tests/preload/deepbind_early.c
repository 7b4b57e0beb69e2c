/* A preload whose constructor loads a plug-in with RTLD_DEEPBIND, and exchanges blocks with it: maybe before the
 * constructor of the malloc, and before any block was asked for. DEEPBIND_PLUGIN names it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void load_early(void) {
  void* const plugin = dlopen(getenv("DEEPBIND_PLUGIN"), RTLD_NOW | RTLD_DEEPBIND);
  void* (*const allocate)(size_t) = plugin ? (void* (*)(size_t))dlsym(plugin, "plugin_allocate") : NULL;
  void (*const release)(void*) = plugin ? (void (*)(void*))dlsym(plugin, "plugin_free") : NULL;
  if (allocate == NULL || release == NULL) {
    fprintf(stderr, "deepbind_early: %s\n", dlerror());
    _Exit(1);
  }
  release(malloc(100));
  free(allocate(100));
  dlclose(plugin);
  puts("early");
  fflush(stdout);
}
