// What the child of a fork reads of threads that were writing without a lock, on a processor whose stores reach memory
// in any order: the fast paths of malloc and free (heap/heap.hpp, heap/link.hpp: keep_order), counts that are stored
// behind their entries, on one side; the system's fork, which shares pages by taking the right to write from them, on
// the other. lib/docs/internals/threads-and-forks.md has the argument in words.
//
// Must hold, though the stores have no order but the program's: the child that sees a store (the head of a list) sees
// those before it of the same thread (the link that the head leads to), and what another thread had stored that the
// storing thread had seen before.
//
// The processor: each access is translated, by an entry of its processor's TLB or by the page table, in the order of the
// program. A store that is translated waits in a buffer and reaches memory in any order with those behind it. One that
// must not be made faults: no access behind it has been made then (exceptions are precise). The system: a fork locks
// the map, takes the right to write page by page, has all processors forget their entries, and waits until accesses by
// old entries are over (Arm: TLBI and DSB; x86: the interrupt that flushes). A fault waits for the map and gives the
// parent a copy. Each of these is needed:
//
// WEAKER REORDERED: the compiler stores the head before the link
// WEAKER NO_WAIT: the fork does not wait for stores by old entries
// WEAKER NO_LOCK: a fault is served while the fork goes on
// WEAKER IMPRECISE: a store is made while one before it faults
// WEAKER RELAXED: a thread stores before it has read what another one stored
// WEAKER PINNED: a page that a device has pinned is copied when its turn comes

#define pages 2
#define places 2  // words of a page
#define processors 2
#define slots 2  // of a buffer

// Frames 0 and 1 are shared with the child, 2 and 3 the parent's copies, 4 the child's own copy of a pinned page.
bit memory[10]  // by frame * places + place
byte frame[pages]
bit writable[pages]
bit map_is_locked
bit child_runs

// Of each processor, by processor * pages + page.
bit known[4], known_writable[4]
byte known_frame[4]
// By processor * slots + slot.
bit waits[4], is_old[4]
byte where[4]

byte pinned_frame  // where the child finds page 0

// Where the words lie: the link and the head on one page or two. Words of other threads lie beside them.
byte head_page

#define entry(cpu, page) ((cpu) * pages + (page))

#define forget(cpu, page) known[entry(cpu, page)] = 0

#ifdef NO_LOCK
#define faults_are_served 1
#else
#define faults_are_served (!map_is_locked)
#endif

#define has_entry(cpu, page, stores) (known[entry(cpu, page)] && (!(stores) || known_writable[entry(cpu, page)]))
#define is_stale(cpu, page, stores) (known[entry(cpu, page)] && (stores) && !known_writable[entry(cpu, page)])
#define has_page(cpu, page, stores) (!known[entry(cpu, page)] && (!(stores) || writable[page]))
#define needs_copy(cpu, page, stores) (!known[entry(cpu, page)] && (stores) && !writable[page])
#define address(cpu, page, place) (known_frame[entry(cpu, page)] * places + (place))

// What comes before an access by a processor that has no entry for it: it reads the table; or it faults, and then the
// table is read again, or the parent gets a copy, which no processor has an entry of.
#define find_entry(cpu, page, stores) \
  atomic { \
    has_page(cpu, page, stores) -> \
    known[entry(cpu, page)] = 1; known_writable[entry(cpu, page)] = writable[page]; \
    known_frame[entry(cpu, page)] = frame[page] \
  } \
  :: atomic { is_stale(cpu, page, stores) -> forget(cpu, page) } \
  :: atomic { \
    (needs_copy(cpu, page, stores) && faults_are_served) -> \
    forget(0, page); forget(1, page); \
    frame[page] = page + 2; \
    memory[(page + 2) * places] = memory[page * places]; \
    memory[(page + 2) * places + 1] = memory[page * places + 1]; \
    writable[page] = 1 \
  }

#define store(cpu, slot, page, place) \
  do \
  :: atomic { \
    has_entry(cpu, page, 1) -> \
    where[(cpu) * slots + slot] = address(cpu, page, place); waits[(cpu) * slots + slot] = 1; \
    break \
  } \
  :: find_entry(cpu, page, 1) \
  od

#define load(cpu, page, place, value) \
  do \
  :: atomic { has_entry(cpu, page, 0) -> value = memory[address(cpu, page, place)]; break } \
  :: find_entry(cpu, page, 0) \
  od

// What lies in a buffer reaches memory in any order. What the child sees changes no more.
#define is_seen_by_child(at) ((at) / places == pinned_frame || (at) / places == 1)
#define write(number) \
  assert(!child_runs || !is_seen_by_child(where[number])); \
  memory[where[number]] = 1; waits[number] = 0; is_old[number] = 0

proctype Buffer(byte cpu) {
end:
  do
  :: atomic { waits[cpu * slots] -> write(cpu * slots) }
  :: atomic { waits[cpu * slots + 1] -> write(cpu * slots + 1) }
  od
}

#define link_page 0
#define link_place 0
#define head_place 1

// set_next, keep_order, and the head.
proctype Thread() {
#ifdef REORDERED
  store(0, 1, head_page, head_place);
  store(0, 0, link_page, link_place)
#else
#ifdef IMPRECISE
  if
  :: skip
  :: store(0, 1, head_page, head_place); store(0, 0, link_page, link_place); goto done
  fi;
#endif
  store(0, 0, link_page, link_place);
  store(0, 1, head_page, head_place);
#endif
done:
  skip
}

// Reads the link of the other thread, and then stores a word of its own, on the other page.
bit other_has_read
proctype Other() {
#ifdef RELAXED
  store(1, 0, 1, 0);
  load(1, link_page, link_place, other_has_read)
#else
  load(1, link_page, link_place, other_has_read);
  store(1, 0, 1, 0)
#endif
}

proctype Fork() {
  byte page, cpu;
  map_is_locked = 1;
  page = 0;
  do
  :: page < pages ->
#ifdef PINNED
     if
     :: page == 0 -> atomic { memory[8] = memory[0]; memory[9] = memory[1]; pinned_frame = 4 }
     :: else -> writable[page] = 0
     fi;
#else
     writable[page] = 0;
#endif
     page++
  :: else -> break
  od;
  cpu = 0;
  do
  :: cpu < processors ->
     atomic {
       forget(cpu, 0); forget(cpu, 1);
       is_old[cpu * slots] = waits[cpu * slots]; is_old[cpu * slots + 1] = waits[cpu * slots + 1]
     }
     cpu++
  :: else -> break
  od;
#ifndef NO_WAIT
  !is_old[0] && !is_old[1] && !is_old[2] && !is_old[3];
#endif
  map_is_locked = 0;
  child_runs = 1
}

#define child_frame(page) ((page) == 0 -> pinned_frame : (page))
#define child_sees_link (memory[child_frame(link_page) * places + link_place])
#define child_sees_head (memory[child_frame(head_page) * places + head_place])
#define child_sees_other (memory[child_frame(1) * places])

// Reads when it likes.
proctype Child() {
  atomic {
    child_runs ->
    assert(!child_sees_head || child_sees_link);
    assert(!(child_sees_other && other_has_read) || child_sees_link)
  }
}

init {
  byte i;
  atomic {
    frame[0] = 0; frame[1] = 1; writable[0] = 1; writable[1] = 1;
    if
    :: head_page = 0
    :: head_page = 1
    fi;
    for (i : 0 .. 3) {  // some entries are there from before
      if
      :: skip
      :: known[i] = 1; known_writable[i] = 1; known_frame[i] = i % pages
      fi
    }
    run Buffer(0); run Buffer(1); run Thread(); run Other(); run Fork(); run Child()
  }
}
