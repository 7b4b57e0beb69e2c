// How the library fails: by the standard's exceptions, or, in a program built without exceptions, by ending it. Open it
// when a message of an exception is to change.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <stdexcept>

namespace sluice::detail {

[[noreturn, gnu::cold, gnu::noinline]] inline void throw_bad_alloc() {
#if defined(__cpp_exceptions)
  throw std::bad_alloc();
#else
  std::abort();
#endif
}

// `what` begins with the name of the function that was called.
[[noreturn, gnu::cold, gnu::noinline]] inline void throw_length_error([[maybe_unused]] const char* what) {
#if defined(__cpp_exceptions)
  throw std::length_error(what);
#else
  std::abort();
#endif
}

[[noreturn, gnu::cold, gnu::noinline]] inline void throw_out_of_range([[maybe_unused]] const char* what) {
#if defined(__cpp_exceptions)
  throw std::out_of_range(what);
#else
  std::abort();
#endif
}

}  // namespace sluice::detail
