/* For what stands before libc's syscall(): a call has as many words as the longest, and its own are the first. */
#pragma once
#include <stdarg.h>

enum { most_words = 6 };

/* Effects: fills words[most_words] with the arguments behind `last`. In a function of variable arguments. */
#define TAKE_WORDS(words, last)          \
  do {                                   \
    va_list list;                        \
    va_start(list, last);                \
    for (int i = 0; i < most_words; ++i) \
      (words)[i] = va_arg(list, long);   \
    va_end(list);                        \
  } while (0)
