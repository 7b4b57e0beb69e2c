// The objects that are loaded (the program, its libraries), and memory that may not be there. Open it when a stack ends
// in a library that was opened late, or when reading an address has to be safe.
//
// Nothing here allocates, takes a lock or changes errno, but prepare_objects(), which is called once at start. All else
// is async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::os {

struct LoadedObject {
  uintptr_t start, end;               // of all that is mapped of it
  const unsigned char* unwind_table;  // its .eh_frame_hdr; null when it has none
  bool is_split = false;              // others may lie between its parts: an address that it covers may be theirs

  bool covers(uintptr_t address) const noexcept { return address >= start && address < end; }
};

// Effects: finds the loader's own look-up (_dl_find_object of glibc 2.35 and later, which needs no lock). Where there
// is none, notes the objects that are loaded now: those that come later are not known.
void prepare_objects() noexcept;

// What is kept of an object that may be closed later: where its code lay, from which place of which file.
struct NotedModule {
  LoadedObject object;
  uintptr_t code_start, code_end;
  uint64_t code_offset;
  char path[512];      // cut where it is longer; empty for the program
  char build_id[129];  // hexadecimal; empty when there is none
};

// Effects: notes the object that an address of code lies in. False when there is none, or it tells nothing. Requires:
// the object stays loaded meanwhile.
bool note_module(uintptr_t address, NotedModule* module) noexcept;

// Whether the same object still lies there.
bool is_still_there(const NotedModule& module) noexcept;

// Whether objects that are loaded later will be known. Requires: prepare_objects().
bool knows_later_objects() noexcept;

// The object that an address lies in. False when there is none, or it is not known.
bool find_object(uintptr_t address, LoadedObject* object) noexcept;
// The same with the name under which it was loaded: empty for the program, null where it is not known.
bool find_object(uintptr_t address, LoadedObject* object, const char** name) noexcept;

// A mapping of a file's code.
struct CodeMapping {
  uintptr_t start, end;
  uint64_t offset;  // in the file
  std::string_view path;
  std::string_view build_id;  // hexadecimal; empty when the file has none
};

// Effects: calls found for each mapping of code, by address, as the system lists them (/proc/self/maps). What it gets
// lives until it returns. Nothing where the system does not tell.
using FoundMapping = void (*)(void* context, const CodeMapping& mapping) noexcept;
void for_each_code_mapping(FoundMapping found, void* context) noexcept;

// Whether an address lies in a program that Go's compiler has made, at least in part.
bool is_gos(uintptr_t address) noexcept;

// Whether the page in which an address lies can be read. One system call, which nearly every sandbox allows (it asks
// the system to read a set of signals there, and then to do something that there is not).
bool is_readable(uintptr_t address) noexcept;

// Effects: copies memory that may not be there. Returns: whether it was.
bool copy_if_readable(void* to, uintptr_t from, size_t bytes) noexcept;

}  // namespace sluice::os
