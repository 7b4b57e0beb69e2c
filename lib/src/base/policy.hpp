// What a build of the heap checks, and how it hardens itself, as compile-time constants: what is off costs no
// instruction. Open it to see what libsluice-secure.so does that libsluice.so does not.
#pragma once

#include <cstdint>

namespace sluice {

// Debug builds: assertions, and the whole heap validated now and then.
#if defined(SLUICE_CHECKED)
inline constexpr bool checked = true;
#else
inline constexpr bool checked = false;
#endif

// libsluice-secure.so. Code asks for `secure` where it means the library as such: which front malloc and free have
// (secure/hardened.hpp), what is said of it. Elsewhere it asks for the mitigation that it means:
//
//   | constant          | what it does                                                          | where               |
//   |-------------------|-----------------------------------------------------------------------|---------------------|
//   | guards_spans      | nobody can touch the unit behind a span, or what a large block leaves | pages/access.hpp,   |
//   |                   | of its span                                                           | pages/fence.hpp     |
//   | quarantines_spans | freed spans wait, then are retained for others of their length        | pages/quarantine.hpp|
//   | checks_blocks     | blocks have a state and a canary; what the program gives back must be | heap/block_state.hpp|
//   |                   | live and whole                                                        | secure/hardened.hpp |
//   | checks_metadata   | check() is compiled in: what the heap reads of its own makes sense    | base/check.hpp      |
//   | encodes_links     | links of free lists are encoded, and verified when followed           | heap/link.hpp       |
//   | delays_reuse      | a thread's freed blocks wait in a queue before they serve again       | heap/reuse.hpp      |
//   | randomizes_order  | blocks leave a slab in random order                                   | heap/slab.cpp       |
//   | clears_memory     | the first bytes of a new large block are cleared; blocks of slabs are | pages/fence.hpp     |
//   |                   | cleared by the front                                                  |                     |
//
// None of them works without the others: the front is written for all of them.
#if defined(SLUICE_SECURE)
inline constexpr bool secure = true;
#else
inline constexpr bool secure = false;
#endif

inline constexpr bool guards_spans = secure;
inline constexpr bool quarantines_spans = secure;
inline constexpr bool checks_blocks = secure;
inline constexpr bool checks_metadata = secure;
inline constexpr bool encodes_links = secure;
inline constexpr bool delays_reuse = secure;
inline constexpr bool randomizes_order = secure;
inline constexpr bool clears_memory = secure;

// Not in a secure build, where a sampled block would have neither canary nor state, and its thread's cache no room.
inline constexpr bool profiles_blocks = !secure;

// A span that programs write to is followed by as many units that nobody can touch.
inline constexpr uint32_t guard_units = guards_spans ? 1 : 0;

}  // namespace sluice
