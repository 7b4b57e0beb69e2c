// What checked pools, stacks and arenas do when they find a mistake of their user. Open it to choose a policy, to name
// objects in messages, or to put a handler of your own in place of the one that stops the program.
//
// Each of these classes has a policy as its last template parameter:
//
//   sluice::checked     finds double releases, foreign pointers, leaks at destruction, markers out of order, and writes
//                       past the end of a block or after its release; costs memory and time
//   sluice::unchecked   finds nothing and costs nothing: the class has no member and no instruction for it
//
// The default, sluice::default_checks, is checked unless NDEBUG is defined; defining SLUICE_CHECKS as 0 or 1 for the
// whole program decides it otherwise. The policy is part of a type's name, so that translation units which differ do
// not link instead of corrupting each other.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <cstddef>
#include <cstdint>
#if __STDC_HOSTED__
#include <cstdio>
#include <cstdlib>
#endif

namespace sluice {

struct checked {
  static constexpr bool enabled = true;
};
struct unchecked {
  static constexpr bool enabled = false;
};

#if !defined(SLUICE_CHECKS)
#if defined(NDEBUG)
#define SLUICE_CHECKS 0
#else
#define SLUICE_CHECKS 1
#endif
#endif
#if SLUICE_CHECKS
using default_checks = checked;
#else
using default_checks = unchecked;
#endif

enum class violation_kind : unsigned char {
  double_release,       // released although it is free
  foreign,              // a pointer, index or marker that did not come from this object
  leak,                 // destroyed while blocks were not given back
  release_order,        // not the last block of a stack
  marker_order,         // a marker that an earlier rewind has ended, or a frame that ends before an inner one
  write_past_end,       // the bytes behind a block were overwritten
  write_after_release,  // a released block was written to
};

// Returns: what happened, in words that follow the object's name.
constexpr const char* to_string(violation_kind kind) noexcept {
  switch (kind) {
    case violation_kind::double_release:
      return "released twice";
    case violation_kind::foreign:
      return "is not from here";
    case violation_kind::leak:
      return "blocks not given back at destruction";
    case violation_kind::release_order:
      return "released before what was allocated after it";
    case violation_kind::marker_order:
      return "rewound out of order";
    case violation_kind::write_past_end:
      return "written past its end";
    case violation_kind::write_after_release:
      return "written to after its release";
  }
  return "misused";
}

struct violation {
  violation_kind kind;
  const char* component;  // "stack_pool" and so on
  const char* name;       // what the constructor was given; never null, empty when it was given none
  const void* object;     // the pool, stack or arena
  const void* address;    // the block or marker, null when `value` says which it is
  std::size_t value;      // the index, handle or marker; for a leak, how many blocks
};

// Called where the mistake is found, on that thread. When it returns, a wrong operation is left out: what was released
// twice stays free, a foreign pointer is ignored, a rewind does not happen. Damage (write_past_end,
// write_after_release) and leaks are met by operations that are right themselves: they go on. It must not throw, as
// these operations do not: an exception ends the program.
using violation_handler = void (*)(const violation&);

namespace detail {

#if __STDC_HOSTED__
inline void stop_at_violation(const violation& found) {
  std::fprintf(stderr, "sluice: %s %s%s%s(%p): ", found.component, found.name[0] != '\0' ? "\"" : "", found.name,
               found.name[0] != '\0' ? "\" " : "", found.object);
  if (found.address != nullptr)
    std::fprintf(stderr, "block %p", found.address);
  else
    std::fprintf(stderr, "%zu", found.value);
  std::fprintf(stderr, " %s\n", to_string(found.kind));
  std::abort();
}
#else
inline void stop_at_violation(const violation&) {
  __builtin_trap();
}
#endif

// Read and written by the compiler's atomic operations: <atomic> brings strings and exceptions along.
inline constinit violation_handler current_violation_handler = &stop_at_violation;

// Not constexpr: a mistake in a constant expression is an error of the compiler's, which names this function.
[[gnu::cold, gnu::noinline]] inline void report_violation(const violation& found) {
  __atomic_load_n(&current_violation_handler, __ATOMIC_ACQUIRE)(found);  // pairs with the exchange that sets it
}

}  // namespace detail

// Effects: calls `handler` from now on, on any thread; null puts back the one that prints a line to stderr and aborts
// (that traps, without an operating system). Returns: the one before. Thread-safe.
inline violation_handler set_violation_handler(violation_handler handler) noexcept {
  return __atomic_exchange_n(&detail::current_violation_handler,
                             handler != nullptr ? handler : &detail::stop_at_violation, __ATOMIC_ACQ_REL);
}

}  // namespace sluice
