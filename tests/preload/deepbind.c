/* A program with plug-ins that are loaded with RTLD_DEEPBIND. Usage: deepbind MODE OPENER, where OPENER is
 * deepbind_opener.so. exchange   opens plug-ins in each way, and exchanges blocks with them; prints where their malloc
 * lies look       opens one, and prints where its malloc lies namespace  opens one in a namespace of its own errors
 * opens what is not there, and itself nothing    nothing: what is preloaded does it all */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int mode = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;

struct plugin {
  void* handle;
  void* (*allocate)(size_t);
  void* (*resize)(void*, size_t);
  void (*release)(void*);
  const char* (*malloc_file)(void);
};

static void* must(void* found) {
  if (found != NULL) return found;
  fprintf(stderr, "deepbind: %s\n", dlerror());
  exit(1);
}

static struct plugin open_plugin(void* opener, const char* how) {
  void* (*const open)(const char*, int) = (void* (*)(const char*, int))must(dlsym(opener, "opener_open"));
  void* const handle = must(open(how, mode));
  struct plugin plugin = {
      .handle = handle,
      .allocate = (void* (*)(size_t))must(dlsym(handle, "plugin_allocate")),
      .resize = (void* (*)(void*, size_t))must(dlsym(handle, "plugin_resize")),
      .release = (void (*)(void*))must(dlsym(handle, "plugin_free")),
      .malloc_file = (const char* (*)(void))must(dlsym(handle, "plugin_malloc_file")),
  };
  return plugin;
}

static void expect_and_free(unsigned char* block, size_t size, unsigned char value, void (*release)(void*)) {
  if (block == NULL || block[0] != value || block[size - 1] != value) {
    fprintf(stderr, "deepbind: a block of %zu bytes changed\n", size);
    exit(1);
  }
  release(block);
}

static void exchange(const struct plugin* plugin) {
  for (size_t size = 1; size < 300000; size += size / 2 + 1) {
    void* const ours = malloc(size);
    void* const theirs = plugin->allocate(size);
    memset(ours, 1, size);
    memset(theirs, 2, size);
    expect_and_free(plugin->resize(ours, size * 3), size, 1, plugin->release);
    expect_and_free(realloc(theirs, size * 3), size, 2, free);
    plugin->release(malloc(size));
    free(plugin->allocate(size));
  }
}

static const char* base_name(const char* path) {
  const char* const slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

static void exchange_with(void* opener, const char* how) {
  const struct plugin plugin = open_plugin(opener, how);
  exchange(&plugin);
  printf("%s: %s\n", how, base_name(plugin.malloc_file()));
  dlclose(plugin.handle);
}

static int use_namespace(const char* path) {
  void* const opener = must(dlmopen(LM_ID_NEWLM, path, mode));
  const struct plugin plugin = open_plugin(opener, "runpath");
  Lmid_t of_opener = LM_ID_BASE, of_plugin = LM_ID_BASE;
  if (dlinfo(opener, RTLD_DI_LMID, &of_opener) != 0 || dlinfo(plugin.handle, RTLD_DI_LMID, &of_plugin) != 0) return 1;
  plugin.release(plugin.resize(plugin.allocate(100), 5000));
  printf("%s: %s\n", of_opener != LM_ID_BASE && of_plugin == of_opener ? "together" : "apart",
         base_name(plugin.malloc_file()));
  return 0;
}

static int meet_errors(void) {
  const char* const missing = "/nonexistent/library.so";
  if (dlopen(missing, mode) != NULL) return 1;
  const char* const first = dlerror();
  if (first == NULL || strstr(first, missing) == NULL) return 1;
  if (dlmopen(LM_ID_BASE, missing, mode) != NULL) return 1;
  const char* const second = dlerror();
  if (second == NULL || strstr(second, missing) == NULL) return 1;
  if (dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD) == NULL || dlopen(NULL, RTLD_NOW) == NULL) return 1;
  puts("as ever");
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fputs("usage: deepbind MODE OPENER\n", stderr);
    return 2;
  }
  if (strcmp(argv[1], "nothing") == 0) return 0;
  if (strcmp(argv[1], "namespace") == 0) return use_namespace(argv[2]);
  if (strcmp(argv[1], "errors") == 0) return meet_errors();
  void* const opener = must(dlopen(argv[2], mode));
  if (strcmp(argv[1], "look") == 0) {
    puts(base_name(open_plugin(opener, "runpath").malloc_file()));
    return 0;
  }
  exchange_with(opener, "runpath");
  exchange_with(opener, "origin");
  exchange_with(opener, "namespace");
  return 0;
}
