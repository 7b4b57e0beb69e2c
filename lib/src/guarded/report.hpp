// Reports of what guarded blocks have caught: faults, bad frees, damage around a block, leaks. Open it to change what a
// report says, or to see when the process goes on after one.
//
// A report is a few lines of text, written without allocating to stderr or to SLUICE_GUARD_LOG:
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

// The block has been freed, or there is none at the address that a call names.
void report_bad_free(Slot& slot, const void* block) noexcept;

// A byte beside the block was changed, which a free finds. Requires: the slot is the caller's.
void report_damage(Slot& slot, const char* changed) noexcept;

// Effects: lists the blocks that are still allocated, grouped by where, unless in a forked child.
void report_leaks() noexcept;

}  // namespace sluice::guarded
