/* A program in C that opens C++ libraries with RTLD_LOCAL: each has a C++ runtime that nobody else sees, and out of
 * memory operator new throws an exception of that runtime. Open it when a plugin ends its program where it should catch
 * std::bad_alloc. Usage: local_runtime with|without PLUGIN..., on Sluice or not; ends with status 0 when all holds. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void* open_plugin(const char* path) {
  void* const plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) fprintf(stderr, "local_runtime: %s\n", dlerror());
  return plugin;
}

static int check_plugin(const char* path, void* plugin) {
  const char* (*check)(void) = (const char* (*)(void))dlsym(plugin, "check");
  const char* const fault = check != NULL ? check() : "has no function to call";
  if (fault != NULL) fprintf(stderr, "local_runtime: %s: %s\n", path, fault);
  return fault != NULL;
}

/* A reference that the allocator kept would hold it. */
static int close_plugin(const char* path, void* plugin) {
  dlclose(plugin);
  void* const left = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (left != NULL) fprintf(stderr, "local_runtime: %s stays when it is closed\n", path);
  return left != NULL;
}

int main(int argc, char** argv) {
  enum { most = 8 };
  void* plugins[most] = {NULL};
  if (argc < 3 || argc > most || (strcmp(argv[1], "with") != 0 && strcmp(argv[1], "without") != 0)) {
    fputs("usage: local_runtime with|without PLUGIN...\n", stderr);
    return 2;
  }
  if ((dlsym(RTLD_DEFAULT, "sluice_stats_get") != NULL) != (strcmp(argv[1], "with") == 0)) {
    fprintf(stderr, "local_runtime: not %s Sluice\n", argv[1]);
    return 2;
  }
  if (dlsym(RTLD_DEFAULT, "__cxa_throw") != NULL) {
    fputs("local_runtime: the process has a C++ runtime that everybody sees\n", stderr);
    return 2;
  }
  int faults = 0;
  for (int i = 2; i < argc; ++i)
    if ((plugins[i] = open_plugin(argv[i])) == NULL) return 1;
  for (int i = 2; i < argc; ++i)
    faults += check_plugin(argv[i], plugins[i]);
  for (int i = 2; i < argc; ++i)
    faults += close_plugin(argv[i], plugins[i]);
  return faults != 0;
}
