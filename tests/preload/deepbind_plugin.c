/* A plug-in that takes blocks from the program and gives it its own, as PHP's extensions do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

void* plugin_allocate(size_t size) {
  return malloc(size);
}

void* plugin_resize(void* block, size_t size) {
  return realloc(block, size);
}

void plugin_free(void* block) {
  free(block);
}

/* The file that the plug-in's malloc lies in. */
const char* plugin_malloc_file(void) {
  Dl_info where;
  return dladdr((void*)malloc, &where) != 0 ? where.dli_fname : "nowhere";
}
