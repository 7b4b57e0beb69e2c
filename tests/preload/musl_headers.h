/* Makes the headers of libstdc++, which were configured for glibc, fit musl: the core of the library uses <atomic> and
 * the like, but no compiled code of it. Included before every source file by musl.sh, and by nothing else. */
#define __GLIBC_PREREQ(major, minor) 0
#define __locale_t locale_t
#include <bits/c++config.h>
#undef _GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT
#undef _GLIBCXX_USE_PTHREAD_MUTEX_CLOCKLOCK
