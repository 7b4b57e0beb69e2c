// Blocks that a thread freed and that lie in slabs of others, on their way there. Open it when memory that one thread
// frees and another allocates costs time, or is not found.
//
// A thread that takes what many others send frees a block of this slab and a block of that. Each would cost an atomic
// instruction on a line of its owner, and another one to tell it. So the blocks are gathered, by the word of the remote
// bitmap that has their bits, and sent when they are many, when their place is needed, or when the cache is flushed.
// Decision: lib/docs/decisions/039-remote-frees-are-gathered.md.
//
// All of it requires the lock of the cache.
#pragma once

#include <cstdint>

#include "base/layout.hpp"
#include "heap/slab.hpp"

namespace sluice::outgoing {

// Effects: takes the blocks at the front of a list that lie in s, of another owner. Returns: as slab::put_remote.
slab::Run take(ThreadCache& c, Unit* s, void* block) noexcept SLUICE_REQUIRES(c.lock);

// Effects: adds blocks to what waits for a word. Returns: as slab::AddRemote. Requires: they are small enough to wait.
uint32_t add(ThreadCache& c, Unit* s, size_t word, uint64_t bits, uint32_t count) noexcept SLUICE_REQUIRES(c.lock);

// Effects: sends all that was gathered to the slabs.
void send(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock);

// Effects: forgets what was gathered: it is out of reach for good.
void forget(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock);

// Blocks of the class that are on their way.
uint32_t count(const ThreadCache& c, unsigned size_class) noexcept;

}  // namespace sluice::outgoing
