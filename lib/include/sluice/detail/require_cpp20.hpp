// Stops a compiler of an earlier language than C++20 with one message, instead of one for each thing that it does not
// know. Every public header includes it first, but for frame.hpp and scope.hpp, for which C++17 is enough.
#pragma once

#if __cplusplus < 202002L
#error "Sluice's C++ headers need C++20: compile with -std=c++20 or later"
#define SLUICE_END_OF_COMPILATION <that was all>  // an error does not end it, a file that is not there does
#include SLUICE_END_OF_COMPILATION
#endif
