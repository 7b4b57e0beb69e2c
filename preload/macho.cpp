// libsluice.dylib and libsluice-secure.dylib in a process of macOS: what is put in the place of libSystem's malloc and
// its relatives. The loader gives the functions of the table at the end to every image but this one,
// so that what is called by its own name here is libSystem's. Code that it does not reach comes by the zone
// (macho_zone.hpp). operator new and delete are libc++'s, which calls malloc and free: they have its new-handler and
// its exceptions. Open it when a call does not arrive.
#include <malloc/malloc.h>
#include <stdlib.h>

#include "macho_front.hpp"
#include "macho_zone.hpp"

extern "C" void vfree(void*);  // declared nowhere any more

namespace sluice {
namespace {

// A block ends in the heap that it comes from, whichever zone the caller names.

void end_in_zone(malloc_zone_t* zone, void* block) noexcept {
  if (zone::covers(block)) return front::free(block);
  malloc_zone_free(zone, block);
}

void* resize_in_zone(malloc_zone_t* zone, void* block, size_t size) noexcept {
  return zone::covers(block) ? macho::reallocate(block, size) : malloc_zone_realloc(zone, block, size);
}

void end_batch_in_zone(malloc_zone_t* zone, void** blocks, unsigned count) noexcept {
  unsigned others = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (zone::covers(blocks[i]))
      front::free(blocks[i]);
    else
      blocks[others++] = blocks[i];
  }
  if (others != 0) malloc_zone_batch_free(zone, blocks, others);
}

struct Interposed {
  const void* ours;
  const void* theirs;
};

#define SLUICE_INTERPOSED(ours, theirs) \
  { reinterpret_cast<const void*>(&(ours)), reinterpret_cast<const void*>(&(::theirs)) }

// Headers of macOS 15 and later declare what Apple's compilers make of the first ones where types are told apart: the
// same, with a number behind the arguments, which is not looked at. Before macOS 14 there are none; the loader skips
// what is not there. A library that is built with older headers gets these calls by the zone.
#pragma clang diagnostic ignored "-Wunguarded-availability-new"
__attribute__((used, section("__DATA,__interpose"))) const Interposed table[] = {
    SLUICE_INTERPOSED(macho::allocate, malloc),
    SLUICE_INTERPOSED(macho::allocate_zeroed, calloc),
    SLUICE_INTERPOSED(macho::end, free),
    SLUICE_INTERPOSED(macho::end, vfree),
    SLUICE_INTERPOSED(macho::reallocate, realloc),
    SLUICE_INTERPOSED(macho::resize_or_free, reallocf),
    SLUICE_INTERPOSED(macho::allocate_pages, valloc),
    SLUICE_INTERPOSED(macho::allocate_aligned_by, aligned_alloc),
    SLUICE_INTERPOSED(macho::allocate_aligned_to, posix_memalign),
    SLUICE_INTERPOSED(macho::size_of, malloc_size),
    SLUICE_INTERPOSED(zone::good_size, malloc_good_size),
    SLUICE_INTERPOSED(end_in_zone, malloc_zone_free),
    SLUICE_INTERPOSED(resize_in_zone, malloc_zone_realloc),
    SLUICE_INTERPOSED(end_batch_in_zone, malloc_zone_batch_free),
#if __MAC_OS_X_VERSION_MAX_ALLOWED >= 150000
    SLUICE_INTERPOSED(macho::allocate, malloc_type_malloc),
    SLUICE_INTERPOSED(macho::allocate_zeroed, malloc_type_calloc),
    SLUICE_INTERPOSED(macho::end, malloc_type_free),
    SLUICE_INTERPOSED(macho::reallocate, malloc_type_realloc),
    SLUICE_INTERPOSED(macho::allocate_pages, malloc_type_valloc),
    SLUICE_INTERPOSED(macho::allocate_aligned_by, malloc_type_aligned_alloc),
    SLUICE_INTERPOSED(macho::allocate_aligned_to, malloc_type_posix_memalign),
#endif
};

}  // namespace
}  // namespace sluice
