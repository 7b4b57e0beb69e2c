/* A program in C that loads one in C++ as a library, and so has the operators of C++ behind that library alone, as an
 * interpreter with a module in C++ does: `latency_host LIBRARY WHAT COUNT`. Open it with latency_test.cpp. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** arguments) {
  if (count < 2) {
    fputs("usage: latency_host LIBRARY ARGUMENTS...\n", stderr);
    return 2;
  }
  void* const library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  void* const found = library != NULL ? dlsym(library, "main") : NULL;
  if (found == NULL) {
    fprintf(stderr, "latency_host: %s\n", dlerror());
    return 1;
  }
  int (*subject)(int, char**);
  memcpy(&subject, &found, sizeof subject);
  const int status = subject(count - 1, arguments + 1);
  const char* const error = dlerror();
  if (error != NULL) fprintf(stderr, "latency_host: an error that is not the program's: %s\n", error);
  return error != NULL ? 1 : status;
}
