// Reports of what guarded blocks have caught: faults, bad frees, damage around a block, leaks. Open it to change what a
// report says, or to see when the process goes on after one.
//
// A report is a few lines of text, written to stderr or to SLUICE_GUARD_LOG without allocating:
//
//   sluice: use after free: write at 0x…, 8 bytes into a block of 24 bytes at 0x…
//     by thread 4711 at:
//       #0 0x…  /usr/bin/program+0x1234 (function+0x12)
//     allocated by thread 4711 at:
//       …
//     freed by thread 4712 at:
//       …
//
// After it the process is stopped, unless SLUICE_GUARD_ABORT=0. What a fault has found stops it by that fault, so that
// the core shows the place; what a free has found, by abort().
#pragma once

namespace sluice::guarded {

struct Slot;

// Effects: remembers where reports go, finds the unwinder and sends faults here. Allocates; called once.
void start_reports() noexcept;

// Effects: reports a call that names a block which has been freed, or an address where none begins. Like the next it
// returns only if the process goes on.
void report_bad_free(Slot& slot, const void* block) noexcept;

// Effects: reports a byte beside the block that was changed, which a free has found. Requires: the slot is the
// caller's.
void report_damage(Slot& slot, const char* changed) noexcept;

// Effects: lists the blocks that are still allocated, grouped by where, unless in a forked child.
void report_leaks() noexcept;

}  // namespace sluice::guarded
