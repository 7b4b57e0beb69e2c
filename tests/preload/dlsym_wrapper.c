/* A preload that stands before dlsym, as overlays of games do: what RTLD_NEXT means is then counted from here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#if defined(__x86_64__)
static const char* const version = "GLIBC_2.2.5";
#else
static const char* const version = "GLIBC_2.17";
#endif

void* dlsym(void* handle, const char* name) {
  static void* (*original)(void*, const char*);
  if (original == NULL) original = (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", version);
  return original(handle, name);
}
