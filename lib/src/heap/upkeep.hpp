// What is done for caches, whoever's they are: remote frees are taken in and vacant pages given back, for threads that
// sleep and for those that have ended. Open it when memory of a thread stays although others free, trim or rest.
//
// Others try the lock of a cache and leave it to its thread where they do not get it; see heap/thread_cache.hpp, where
// look_at_due is declared.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::cache {

// Effects: takes in for other threads what was freed into their slabs, as far as they do not use them at this moment,
// destroys the slabs that are empty then, and gives vacant pages back if it is time: of all threads, or of those alone
// that have not taken in everything, or freed so much that somebody should look.
enum class Others : uint8_t { All, WithPending };
void collect_from_others(Others which) noexcept;

// Whether there is a thread that has not taken in everything that others freed into its slabs.
bool any_pending() noexcept;

// Effects: gives back the vacant pages (heap/vacant.hpp) of the calling thread's slabs, unless hardly anything was
// freed since the last time; or those of all slabs whose owner does not use them at this moment, but `keep` bytes.
// Returns: how many bytes.
void give_back_own_vacant() noexcept;
size_t give_back_vacant(size_t keep) noexcept;

}  // namespace sluice::cache
