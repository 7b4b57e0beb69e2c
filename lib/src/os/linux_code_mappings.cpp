// The mappings of code that the process has, with their files' build ids. See objects.hpp.
#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "os/linux_maps.hpp"
#include "os/memory.hpp"
#include "os/objects.hpp"
#include "os/process.hpp"

namespace sluice::os {
namespace {

// Mapped, since a handler's stack may be small.
struct Buffers {
  char lines[longest_line];
  char last_path[longest_line];
};

constexpr size_t longest_id = 64;  // bytes

// Writes the build id of the notes at an address in hexadecimal. Returns: how many characters.
size_t read_build_id(uintptr_t notes, size_t bytes, char* id) noexcept {
  while (bytes > sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    char text[longest_id + 4];
    if (!copy_if_readable(&note, notes, sizeof note)) return 0;
    const size_t name = (note.n_namesz + size_t{3}) & ~size_t{3};
    const size_t content = (note.n_descsz + size_t{3}) & ~size_t{3};
    const size_t total = sizeof note + name + content;
    if (total > bytes) return 0;
    if (note.n_type == NT_GNU_BUILD_ID && name == 4 && note.n_descsz <= longest_id) {
      if (!copy_if_readable(text, notes + sizeof note, 4 + note.n_descsz) || memcmp(text, "GNU", 4) != 0) return 0;
      for (size_t i = 0; i < note.n_descsz; ++i) {
        const auto byte = static_cast<unsigned char>(text[4 + i]);
        id[2 * i] = "0123456789abcdef"[byte >> 4];
        id[2 * i + 1] = "0123456789abcdef"[byte & 15];
      }
      return size_t{2} * note.n_descsz;
    }
    notes += total;
    bytes -= total;
  }
  return 0;
}

// Calls found(part) for each program header of the object whose file begins at an address.
template <typename Found>
void for_each_part(uintptr_t base, Found found) noexcept {
  ElfW(Ehdr) header;
  if (!copy_if_readable(&header, base, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_phentsize != sizeof(ElfW(Phdr)))
    return;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) part;
    if (!copy_if_readable(&part, base + header.e_phoff + i * sizeof part, sizeof part)) return;
    found(part);
  }
}

// The build id of the object whose file begins at an address.
size_t find_build_id(uintptr_t base, char* id) noexcept {
  uintptr_t bias = 0;
  size_t length = 0;
  bool is_first = true;
  for_each_part(base, [&](const ElfW(Phdr) & part) noexcept {
    if (part.p_type == PT_LOAD && is_first) {
      bias = base - (part.p_vaddr & ~(page_size() - 1));
      is_first = false;
    }
    if (part.p_type == PT_NOTE && !is_first && length == 0)
      length = read_build_id(bias + part.p_vaddr, part.p_memsz, id);
  });
  return length;
}

void for_each_code_mapping(Buffers& buffers, FoundMapping found, void* context) noexcept {
  Lines lines("/proc/self/maps", buffers.lines);
  std::string_view line;
  char* const last_path = buffers.last_path;
  size_t last_length = 0;
  uintptr_t base = 0;  // where the file with that name begins
  while (lines.next(&line)) {
    CodeMapping mapping{};
    mapping.start = take_hexadecimal(line);
    skip(line, 1);
    mapping.end = take_hexadecimal(line);
    skip(line, 1);
    const bool is_code = line.size() > 2 && line[2] == 'x';
    skip(line, 5);
    mapping.offset = take_hexadecimal(line);
    const size_t path = line.find_first_of("/[");
    if (path == std::string_view::npos) continue;
    skip(line, path);
    mapping.path = line;
    if (line != std::string_view(last_path, last_length)) {
      memcpy(last_path, line.data(), line.size());
      last_length = line.size();
      base = mapping.offset == 0 ? mapping.start : 0;
    }
    if (!is_code) continue;
    char id[2 * longest_id];
    if (base != 0) mapping.build_id = {id, find_build_id(base, id)};
    found(context, mapping);
  }
}

}  // namespace

bool note_module(uintptr_t address, NotedModule* module) noexcept {
  *module = {};
  const char* name = nullptr;
  if (!find_object(address, &module->object, &name)) return false;
  const uintptr_t base = module->object.start;
  uintptr_t bias = 0;
  bool is_first = true;
  for_each_part(base, [&](const ElfW(Phdr) & part) noexcept {
    if (part.p_type != PT_LOAD) return;
    if (is_first) bias = base - (part.p_vaddr & ~(page_size() - 1));
    is_first = false;
    const uintptr_t start = bias + part.p_vaddr;
    if (address < start || address - start >= part.p_memsz) return;
    const uintptr_t cut = start & (page_size() - 1);  // mappings begin with a page
    module->code_start = start - cut;
    module->code_end = start + part.p_memsz;
    module->code_offset = part.p_offset - cut;
  });
  if (module->code_end == 0) return false;
  for (size_t i = 0; name != nullptr && name[i] != '\0' && i + 1 < sizeof module->path; ++i)
    module->path[i] = name[i];
  module->build_id[find_build_id(base, module->build_id)] = '\0';
  return true;
}

bool is_still_there(const NotedModule& module) noexcept {
  LoadedObject now{};
  return find_object(module.object.start, &now) && now.end == module.object.end &&
         now.unwind_table == module.object.unwind_table;
}

void for_each_code_mapping(FoundMapping found, void* context) noexcept {
  auto* const buffers = static_cast<Buffers*>(map_scratch(sizeof(Buffers)));
  if (buffers == nullptr) return;
  for_each_code_mapping(*buffers, found, context);
  unmap_scratch(buffers, sizeof(Buffers));
}

}  // namespace sluice::os
