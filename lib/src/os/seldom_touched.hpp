// Where large variables lie that most processes never touch: apart from the small ones that each process writes, which
// share a few pages then and not each one with a part of these. Open it when a process has more of the library's data
// in memory than it needs. preload/CMakeLists.txt tells GNU ld to place the sections; with other linkers nothing
// changes. Checked builds leave them where they are: locks have their rank there, so that such variables are not zero.
#pragma once

#if defined(__ELF__) && !defined(SLUICE_CHECKED)
#define SLUICE_SELDOM_TOUCHED __attribute__((section(".bss.seldom")))          // it is zero at first
#define SLUICE_SELDOM_TOUCHED_VALUES __attribute__((section(".data.seldom")))  // it is not
#else
#define SLUICE_SELDOM_TOUCHED
#define SLUICE_SELDOM_TOUCHED_VALUES
#endif
