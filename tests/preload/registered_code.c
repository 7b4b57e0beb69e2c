/* What guard_test.py runs under SLUICE_GUARD_RATE: code that is generated, as a JIT compiler's, with tables for
   unwinding that libgcc was told of. Calls malloc from such code, and throws through the tables so that libgcc sorts
   them, which allocates under libgcc's lock. Prints "went on" when it comes to its end. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unwind.h>

void __register_frame(void* table);

enum { stack_is_where_it_was = 0, stack_is_not_told = 1 };

/* subq $8, %rsp; movabsq $function, %rax; callq *%rax; addq $8, %rsp; ret */
static void* generate_call(void* function) {
  unsigned char code[] = {0x48, 0x83, 0xec, 8,    0x48, 0xb8, 0,    0,    0, 0,   0,
                          0,    0,    0,    0xff, 0xd0, 0x48, 0x83, 0xc4, 8, 0xc3};
  memcpy(code + 6, &function, sizeof function);
  void* const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) exit(97);
  memcpy(page, code, sizeof code);
  return page;
}

/* Tells libgcc of the code at `code`. LuaJIT's tables tell where exceptions go, and nothing of the stack. */
static void register_code(const void* code, int kind) {
  static unsigned char tables[2][80];
  unsigned char* const table = tables[kind];
  const unsigned char common[] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16,
                                  /* the caller's stack: at the stack pointer and 16; its instruction 8 below that */
                                  0x0c, 7, 16, 0x90, 1, 0, 0, 0, 0, 0, 0};
  const uint32_t bytes = 28;
  const uint32_t to_common = 28;
  const uint64_t from = (uintptr_t)code;
  const uint64_t length = 64;
  memcpy(table, common, sizeof common);
  if (kind == stack_is_not_told) memset(table + 13, 0, 3);
  memcpy(table + 24, &bytes, sizeof bytes);
  memcpy(table + 28, &to_common, sizeof to_common);
  memcpy(table + 32, &from, sizeof from);
  memcpy(table + 40, &length, sizeof length);
  __register_frame(table);
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context* context, void* count) {
  (void)context;
  ++*(int*)count;
  return _URC_NO_REASON;
}

static void* allocate(void) {
  return malloc(24);
}

int main(int count, char** arguments) {
  if (count != 2) return 99;
  setvbuf(stdout, NULL, _IONBF, 0);
  void* const code = generate_call((void*)(uintptr_t)allocate);
  const int unwinds = strcmp(arguments[1], "unwind") == 0;
  register_code(code, unwinds ? stack_is_where_it_was : stack_is_not_told);
  if (unwinds) {
    int frames = 0;
    (void)_Unwind_Backtrace(count_frame, &frames);
    if (frames < 2) return 1;
  }
  void* (*call)(void);
  memcpy(&call, &code, sizeof call);
  for (int i = 0; i < 100; ++i)
    free(call());
  puts("went on");
  return 0;
}
