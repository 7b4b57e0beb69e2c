// A running process that is asked (SLUICE_ATTACH=1): for its statistics, for a heap profile, to give memory back, to
// change an option. `sluice attach` and `sluice top` ask. Open it to add a request; who may ask, and how:
// os/attach.hpp.
//
// A thread of its own answers, which sleeps while nobody asks. It allocates nothing and has no cache. A forked child
// has none, unless SLUICE_ATTACH_CHILDREN says so.
//
// A request is a line of at most 255 bytes. The answer is a line "ok", what was asked for, and "ok" again, so that one
// that is cut short is no answer; or a line "error WHY".
//
//   stats text | stats json     the statistics, as SLUICE_STATS prints them
//   figures                     a few of them, cheaply: lines "NAME NUMBER"
//   profile start RATE          RATE as the option has it; 0: SLUICE_PROFILE_RATE
//   profile dump                the profile in pprof's format
//   profile stop
//   purge                       as malloc_trim(0)
//   set NAME=VALUE              one of the options that may change (base/options.hpp)
//
// Decision: lib/docs/decisions/038-attach.md.
#pragma once

#include "os/attach.hpp"

namespace sluice::stats {

// Effects: starts the thread if the options ask for it; where the system refuses, there is none, and nothing is said.
// Called by a constructor, once.
void start_attach() noexcept;

// In the child of a fork, after its heap is usable.
void start_attach_in_child() noexcept;

// What the thread answers.
os::Reply answer_request(char* request) noexcept;

}  // namespace sluice::stats
