// See objects.hpp.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "os/linux_call.hpp"
#include "os/memory.hpp"
#include "os/objects.hpp"
#include "os/seldom_touched.hpp"

namespace sluice::os {
namespace {

// What _dl_find_object writes; older headers do not declare it.
struct Found {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  void* link_map;
  void* eh_frame;  // .eh_frame_hdr
  unsigned long long reserved[8];
};
using FindFunction = int(void*, Found*);
constinit FindFunction* find_function = nullptr;

constexpr size_t most_noted = 128;
SLUICE_SELDOM_TOUCHED constinit LoadedObject noted[most_noted]{};
constinit size_t noted_count = 0;

int note(dl_phdr_info* info, size_t, void*) noexcept {
  if (noted_count == most_noted) return 1;
  LoadedObject object{UINTPTR_MAX, 0, nullptr};
  for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_GNU_EH_FRAME) object.unwind_table = reinterpret_cast<const unsigned char*>(start);
    if (header.p_type != PT_LOAD) continue;
    if (start < object.start) object.start = start;
    if (start + header.p_memsz > object.end) object.end = start + header.p_memsz;
  }
  if (object.start < object.end) noted[noted_count++] = object;
  return 0;
}

// The program from its first segment to its last one. Where pages lie between two of them that are not the program's,
// the loader tells of one segment alone, and tables lie in another.
constinit LoadedObject program{};
constinit bool has_go = false;
constinit bool is_static = false;  // no loader, so no objects that come later

// Go's compiler notes an id of its own.
bool is_of_go(const char* at, size_t bytes) noexcept {
  constexpr uint32_t build_id = 4;
  constexpr char owner[] = "Go\0";
  ElfW(Nhdr) note;
  while (bytes >= sizeof note) {
    memcpy(&note, at, sizeof note);
    const size_t name_bytes = (size_t{note.n_namesz} + 3) & ~size_t{3};
    const size_t all = sizeof note + name_bytes + ((size_t{note.n_descsz} + 3) & ~size_t{3});
    if (all > bytes) return false;
    if (note.n_type == build_id && note.n_namesz == sizeof owner && memcmp(at + sizeof note, owner, sizeof owner) == 0)
      return true;
    at += all;
    bytes -= all;
  }
  return false;
}

// An object, and how far it lies from where it was linked to.
struct Placed {
  const ElfW(Phdr) * headers;
  uintptr_t bias;
};
int find_bias(dl_phdr_info* info, size_t, void* argument) noexcept {
  auto& placed = *static_cast<Placed*>(argument);
  if (info->dlpi_phdr != placed.headers) return 0;
  placed.bias = info->dlpi_addr;
  return 1;
}

uintptr_t bias_of(const ElfW(Phdr) * headers, size_t count) noexcept {
  for (size_t i = 0; i < count; ++i)
    if (headers[i].p_type == PT_PHDR) return reinterpret_cast<uintptr_t>(headers) - headers[i].p_vaddr;
  Placed placed{headers, 0};
  (void)dl_iterate_phdr(find_bias, &placed);  // -static-pie leaves them out
  return placed.bias;
}

void note_program() noexcept {
  const auto* const headers = reinterpret_cast<const ElfW(Phdr)*>(getauxval(AT_PHDR));
  const size_t count = getauxval(AT_PHNUM);
  if (headers == nullptr) return;
  uintptr_t first = UINTPTR_MAX;
  uintptr_t end = 0;
  const uintptr_t bias = bias_of(headers, count);
  is_static = true;
  for (size_t i = 0; i < count; ++i) {
    const auto& header = headers[i];
    if (header.p_type == PT_INTERP) is_static = false;
    if (header.p_type != PT_LOAD) continue;
    if (header.p_vaddr < first) first = header.p_vaddr;
    if (header.p_vaddr + header.p_memsz > end) end = header.p_vaddr + header.p_memsz;
  }
  if (first < end) program = {bias + first, bias + end, nullptr};
  for (size_t i = 0; i < count; ++i)
    if (headers[i].p_type == PT_NOTE &&
        is_of_go(reinterpret_cast<const char*>(bias + headers[i].p_vaddr), headers[i].p_filesz))
      has_go = true;
}

// Requires: the loader told of it.
void widen(LoadedObject* object) noexcept {
  const auto table = reinterpret_cast<uintptr_t>(object->unwind_table);
  if (object->covers(table) || !program.covers(object->start) || !program.covers(table)) return;
  object->start = program.start;
  object->end = program.end;
  object->is_split = true;
}

}  // namespace

void prepare_objects() noexcept {
  note_program();
  find_function = reinterpret_cast<FindFunction*>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
  if (find_function == nullptr && noted_count == 0) (void)dl_iterate_phdr(note, nullptr);
}

bool knows_later_objects() noexcept {
  return find_function != nullptr || is_static;
}

bool find_object(uintptr_t address, LoadedObject* object) noexcept {
  const char* name;
  return find_object(address, object, &name);
}

bool find_object(uintptr_t address, LoadedObject* object, const char** name) noexcept {
  if (find_function != nullptr) {
    Found found;
    if (find_function(reinterpret_cast<void*>(address), &found) != 0) return false;
    *object = {reinterpret_cast<uintptr_t>(found.map_start), reinterpret_cast<uintptr_t>(found.map_end),
               static_cast<const unsigned char*>(found.eh_frame)};
    *name = found.link_map != nullptr ? static_cast<const link_map*>(found.link_map)->l_name : nullptr;
    const bool found_it = object->covers(address);
    widen(object);
    return found_it;
  }
  for (size_t i = 0; i < noted_count; ++i) {
    if (!noted[i].covers(address)) continue;
    *object = noted[i];
    *name = nullptr;
    return true;
  }
  return false;
}

bool is_gos(uintptr_t address) noexcept {
  return has_go && program.covers(address);
}

bool is_readable(uintptr_t address) noexcept {
  constexpr size_t set_bytes = 8;
  constexpr int no_such_action = -1;
  if (address < set_bytes) return false;  // to the call, that there is no set to read
  return system_call(SYS_rt_sigprocmask, no_such_action, address & ~(set_bytes - 1), nullptr, set_bytes) != -EFAULT;
}

// What lies there need not be an object: memory that AddressSanitizer keeps to itself may be asked about, too. Byte by
// byte and volatile, lest the compiler make a call of memcpy of it, which AddressSanitizer checks wherever it stands.
__attribute__((no_sanitize("address"))) bool copy_if_readable(void* to, uintptr_t from, size_t bytes) noexcept {
  const uintptr_t end = from + bytes;
  if (end < from) return false;
  for (uintptr_t page = from & ~(page_size() - 1); page < end; page += page_size())
    if (!is_readable(page)) return false;
  const auto* const source = reinterpret_cast<const volatile unsigned char*>(from);
  auto* const copy = static_cast<unsigned char*>(to);
  for (size_t i = 0; i < bytes; ++i)
    copy[i] = source[i];
  return true;
}

}  // namespace sluice::os
