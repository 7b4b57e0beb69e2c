// Memory nodes (NUMA): where some memory is nearer to a processor than other memory, a thread gets spans near to it.
// Open it to see which memory a thread of such a machine gets. Decision:
// lib/docs/decisions/049-spans-stay-on-their-node.md.
//
// The system puts a page on the node of the thread that touches it first. So who takes a clean span marks it with its
// node, in the descriptor of the first unit; the mark stays when the span is freed, whoever frees it, until its pages
// go. A thread takes what is in memory and *near*, of its own node, then what is clean, and what is *far* where there
// is nothing else. Clean spans are of no node.
//
// Nodes are numbered as threads are seen on them. As long as all were on one, nothing here costs anything; neither does
// it in a program of one thread. The node is asked for where the region is, without a system call.
#pragma once

#include <atomic>
#include <cstddef>

#include "base/thread_safety.hpp"
#include "pages/mappings.hpp"

namespace sluice::nodes {

extern constinit std::atomic<unsigned> count __attribute__((visibility("hidden")));  // that threads were seen on

// Whether spans may be of more than one. It stays so.
inline bool are_several() noexcept {
  return count.load(std::memory_order_relaxed) > 1;
}

// Effects: the node of this thread is the first one. Called before the program makes its second thread.
void note_first() noexcept;

// What the functions below do where there is more to it: out of line, and out of the way of small programs.
namespace several {
__attribute__((cold)) unsigned note_own() noexcept SLUICE_REQUIRES(region::state.lock);
__attribute__((cold)) unsigned own() noexcept;
__attribute__((cold)) unsigned of(size_t index) noexcept;
__attribute__((cold)) bool is_far(size_t index) noexcept;
__attribute__((cold)) void set(size_t index, unsigned node) noexcept;
}  // namespace several

// Returns: the node of this thread; it is counted now. 0 where the program has one thread, or does not want several.
inline unsigned note_own() noexcept SLUICE_REQUIRES(region::state.lock) {
  return has_several_threads.load(std::memory_order_relaxed) ? several::note_own() : 0;
}

// Returns: the node of this thread, if it was seen before, else 0.
inline unsigned own() noexcept {
  return are_several() ? several::own() : 0;
}

// Returns: the node of a span that is not clean, by its first unit.
inline unsigned of(size_t index) noexcept {
  return are_several() ? several::of(index) : 0;
}

// Whether it is of another node than this thread.
inline bool is_far(size_t index) noexcept {
  return are_several() && several::is_far(index);
}

// Effects: the span is of the node. Requires: the region's lock; the span is in no list.
inline void set(size_t index, unsigned node) noexcept {
  if (are_several()) several::set(index, node);
}

}  // namespace sluice::nodes
