// What the tests have in the place of libSystem's malloc: zones as its libmalloc keeps them, with a default zone of its
// own. Compiled for macOS into an image that the emulated process loads beside libsluice.dylib. Open it when a test
// needs another rule of libmalloc's.
//
// The rules that matter, from Apple's sources of libmalloc: zones stand in an array; register puts one at its end,
// unregister puts the last one in the place of the one that goes; the first one serves what names no zone;
// malloc_default_zone() is a zone that stands in for the first; the owner of a block is who says a size for it, asked
// in order, and where that is the first zone, its stand-in is what is returned.
#include <malloc/malloc.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

// The default zone of the system: blocks one after the other, with a head, that are never used again.
struct head {
  size_t size;
  size_t live;
};
static _Alignas(16384) char pool[1 << 20];
static size_t pool_used = 0;

EXPORT size_t system_frees = 0;   // blocks that came back to the system's zone
EXPORT size_t system_faults = 0;  // what libmalloc would have ended the process for

static int is_of_pool(const void* block) {
  return (const char*)block > pool && (const char*)block < pool + pool_used;
}
static struct head* head_of(const void* block) {
  return (struct head*)((uintptr_t)block - sizeof(struct head));
}

static size_t system_size(malloc_zone_t* zone, const void* block) {
  (void)zone;
  return is_of_pool(block) && head_of(block)->live == 1 ? head_of(block)->size : 0;
}
static void* system_memalign(malloc_zone_t* zone, size_t alignment, size_t size) {
  (void)zone;
  size_t at = (pool_used + sizeof(struct head) + alignment - 1) / alignment * alignment;
  size = (size + 15) / 16 * 16;
  if (size > sizeof pool || at + size > sizeof pool) return 0;
  pool_used = at + size;
  *head_of(pool + at) = (struct head){size, 1};
  return pool + at;
}
static void* system_malloc(malloc_zone_t* zone, size_t size) {
  return system_memalign(zone, 16, size != 0 ? size : 1);
}
static void* system_calloc(malloc_zone_t* zone, size_t count, size_t size) {
  return system_malloc(zone, count * size);  // the pool reads as zero
}
static void* system_valloc(malloc_zone_t* zone, size_t size) {
  return system_memalign(zone, 16384, size);
}
static void system_free(malloc_zone_t* zone, void* block) {
  if (block == 0) return;
  if (system_size(zone, block) == 0) {
    ++system_faults;
    return;
  }
  head_of(block)->live = 2;
  ++system_frees;
}
static void* system_realloc(malloc_zone_t* zone, void* block, size_t size) {
  void* moved = system_malloc(zone, size);
  if (block == 0 || moved == 0) return moved;
  const size_t old = system_size(zone, block);
  for (size_t i = 0; i < old && i < size; ++i)
    ((char*)moved)[i] = ((char*)block)[i];
  system_free(zone, block);
  return moved;
}
static void system_destroy(malloc_zone_t* zone) {
  (void)zone;
}
static void system_lock(malloc_zone_t* zone) {
  (void)zone;
}

static malloc_introspection_t introspection = {
    .force_lock = system_lock, .force_unlock = system_lock, .reinit_lock = system_lock};
static malloc_zone_t system_zone = {.size = system_size,
                                    .malloc = system_malloc,
                                    .calloc = system_calloc,
                                    .valloc = system_valloc,
                                    .free = system_free,
                                    .realloc = system_realloc,
                                    .destroy = system_destroy,
                                    .zone_name = "DefaultMallocZone",
                                    .memalign = system_memalign,
                                    .introspect = &introspection,
                                    .version = 13};

// Purgeable memory: a zone that has no blocks, made when it is first asked for.
static size_t no_size(malloc_zone_t* zone, const void* block) {
  (void)zone;
  (void)block;
  return 0;
}
static malloc_zone_t purgeable_zone = {
    .size = no_size, .zone_name = "DefaultPurgeableMallocZone", .introspect = &introspection, .version = 13};

enum { most_zones = 16 };
static malloc_zone_t* zones[most_zones] = {&system_zone};
static unsigned zone_count = 1;

EXPORT void malloc_zone_register(malloc_zone_t* zone) {
  for (unsigned i = 0; i < zone_count; ++i)
    if (zones[i] == zone) {
      ++system_faults;
      return;
    }
  zones[zone_count++] = zone;
}

EXPORT void malloc_zone_unregister(malloc_zone_t* zone) {
  for (unsigned i = 0; i < zone_count; ++i)
    if (zones[i] == zone) {
      zones[i] = zones[--zone_count];
      return;
    }
  ++system_faults;
}

// The stand-in of the first zone.
static size_t first_size(malloc_zone_t* zone, const void* block) {
  (void)zone;
  return zones[0]->size(zones[0], block);
}
static void* first_malloc(malloc_zone_t* zone, size_t size) {
  (void)zone;
  return zones[0]->malloc(zones[0], size);
}
static void* first_calloc(malloc_zone_t* zone, size_t count, size_t size) {
  (void)zone;
  return zones[0]->calloc(zones[0], count, size);
}
static void first_free(malloc_zone_t* zone, void* block) {
  (void)zone;
  zones[0]->free(zones[0], block);
}
static void* first_realloc(malloc_zone_t* zone, void* block, size_t size) {
  (void)zone;
  return zones[0]->realloc(zones[0], block, size);
}
static malloc_zone_t first_zone = {.size = first_size,
                                   .malloc = first_malloc,
                                   .calloc = first_calloc,
                                   .free = first_free,
                                   .realloc = first_realloc,
                                   .zone_name = "DefaultMallocZone",
                                   .introspect = &introspection,
                                   .version = 13};

EXPORT malloc_zone_t* malloc_default_zone(void) {
  return &first_zone;
}

EXPORT malloc_zone_t* malloc_default_purgeable_zone(void) {
  for (unsigned i = 0; i < zone_count; ++i)
    if (zones[i] == &purgeable_zone) return &purgeable_zone;
  malloc_zone_register(&purgeable_zone);
  return &purgeable_zone;
}

EXPORT kern_return_t malloc_get_all_zones(task_t task, memory_reader_t reader, vm_address_t** addresses,
                                          unsigned* count) {
  (void)task;
  (void)reader;
  *addresses = (vm_address_t*)zones;
  *count = zone_count;
  return 0;
}

EXPORT malloc_zone_t* malloc_zone_from_ptr(const void* block) {
  for (unsigned i = 0; i < zone_count; ++i)
    if (zones[i]->size(zones[i], block) != 0) return i == 0 ? &first_zone : zones[i];
  return 0;
}

EXPORT void malloc_zone_free(malloc_zone_t* zone, void* block) {
  zone->free(zone, block);
}
EXPORT void* malloc_zone_realloc(malloc_zone_t* zone, void* block, size_t size) {
  return zone->realloc(zone, block, size);
}
EXPORT void* malloc_zone_malloc(malloc_zone_t* zone, size_t size) {
  return zone->malloc(zone, size);
}
EXPORT void malloc_zone_batch_free(malloc_zone_t* zone, void** blocks, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    zone->free(zone, blocks[i]);
}

// What a system library does whose calls the loader does not reach: malloc is the first zone's, and free looks for the
// owner and ends the process where there is none.
EXPORT void* malloc(size_t size) {
  return zones[0]->malloc(zones[0], size);
}
EXPORT void* calloc(size_t count, size_t size) {
  return zones[0]->calloc(zones[0], count, size);
}
EXPORT void* realloc(void* block, size_t size) {
  if (block == 0) return malloc(size);
  malloc_zone_t* const zone = malloc_zone_from_ptr(block);
  if (zone != 0) return zone->realloc(zone, block, size);
  ++system_faults;
  return 0;
}
EXPORT void free(void* block) {
  if (block == 0) return;
  malloc_zone_t* const zone = malloc_zone_from_ptr(block);
  if (zone != 0)
    zone->free(zone, block);
  else
    ++system_faults;
}
EXPORT void vfree(void* block) {
  free(block);
}
EXPORT void* reallocf(void* block, size_t size) {
  return realloc(block, size);
}
EXPORT void* valloc(size_t size) {
  return zones[0]->valloc(zones[0], size);
}
EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  return zones[0]->memalign(zones[0], alignment, size);
}
EXPORT int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = zones[0]->memalign(zones[0], alignment, size);
  return *out != 0 ? 0 : 12;
}
EXPORT size_t malloc_size(const void* block) {
  malloc_zone_t* const zone = malloc_zone_from_ptr(block);
  return zone != 0 ? zone->size(zone, block) : 0;
}
EXPORT size_t malloc_good_size(size_t size) {
  return (size + 15) / 16 * 16;
}

EXPORT void* malloc_type_malloc(size_t size, malloc_type_id_t type) {
  (void)type;
  return system_malloc(&system_zone, size);  // as on macOS 26, where it is not the first zone that serves
}
EXPORT void malloc_type_free(void* block, malloc_type_id_t type) {
  (void)type;
  free(block);
}

// The folder of all processes is the first one. As libSystem's, it makes the memory where it is given none.
EXPORT char* getcwd(char* out, size_t size) {
  if (out == 0) out = malloc(size = 2);
  if (out == 0 || size < 2) return 0;
  out[0] = '/';
  out[1] = 0;
  return out;
}

// Of these a program that has a malloc of its own gets libSystem's.
EXPORT void* system_allocate(size_t size) {
  return malloc(size);
}
EXPORT void system_release(void* block) {
  free(block);
}

// As libSystem's fork() does around its system call.
EXPORT void system_fork_prepare(void) {
  for (unsigned i = 0; i < zone_count; ++i)
    zones[i]->introspect->force_lock(zones[i]);
}
EXPORT void system_fork_parent(void) {
  for (unsigned i = 0; i < zone_count; ++i)
    zones[i]->introspect->force_unlock(zones[i]);
}
EXPORT void system_fork_child(void) {
  for (unsigned i = 0; i < zone_count; ++i)
    zones[i]->introspect->reinit_lock(zones[i]);
}

// The rest of libSystem that a plain loop serves.
#define PLAIN __attribute__((visibility("default"), no_builtin))
typedef __SIZE_TYPE__ size;
PLAIN void* memset(void* to, int value, size count) {
  for (size i = 0; i < count; ++i)
    ((volatile char*)to)[i] = (char)value;
  return to;
}
PLAIN void bzero(void* to, size count) {
  memset(to, 0, count);
}
PLAIN void __bzero(void* to, size count) {
  memset(to, 0, count);
}  // what compilers call on x86-64
PLAIN void* memmove(void* to, const void* from, size count) {
  volatile char* const t = to;
  const char* const f = from;
  if (t < f)
    for (size i = 0; i < count; ++i)
      t[i] = f[i];
  else
    for (size i = count; i != 0; --i)
      t[i - 1] = f[i - 1];
  return to;
}
PLAIN void* memcpy(void* to, const void* from, size count) {
  return memmove(to, from, count);
}
// Here and not in Python, which also reads what nobody may.
PLAIN int memcmp(const void* a, const void* b, size count) {
  for (size i = 0; i < count; ++i)
    if (((const unsigned char*)a)[i] != ((const volatile unsigned char*)b)[i])
      return ((const unsigned char*)a)[i] - ((const unsigned char*)b)[i];
  return 0;
}
PLAIN char* strcpy(char* to, const char* from) {
  for (volatile char* t = to; (*t++ = *from++) != 0;) {
  }
  return to;
}
