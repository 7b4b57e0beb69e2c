// How functions of the C library are defined here that programs call under their names: as its headers declare them,
// and with the names that only glibc has where it is glibc.
#pragma once

#include <errno.h>  // where it is glibc, that says so

#define SLUICE_EXPORT __attribute__((visibility("default")))

#if defined(__GLIBC__)
#define SLUICE_OF_LIBC noexcept
#define SLUICE_FOR_GLIBC(definition) definition
#else
#define SLUICE_OF_LIBC
#define SLUICE_FOR_GLIBC(definition)  // musl has a malloc of its own behind such names, for itself
#endif
