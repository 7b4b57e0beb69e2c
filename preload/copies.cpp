// See copies.hpp.
#include "copies.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdint>
#include <string_view>

#include "base/copy_note.hpp"
#include "base/options.hpp"
#include "base/policy.hpp"
#include "base/print.hpp"
#include "sluice/sluice.h"

// As find_copy_note() reads it. Linkers keep notes, whatever else they leave out.
static_assert(sluice::copy_note_type == 1);
asm(".pushsection .note.sluice, \"a\", %note\n"
    ".balign 4\n"
    ".long 2f - 1f, 4f - 3f, 1\n"
    "1: .asciz \"" SLUICE_COPY_NOTE_NAME
    "\"\n"
    "2: .balign 4\n"
    "3: .asciz \"" SLUICE_VERSION
    "\"\n"
    "4: .balign 4\n"
    ".popsection\n");

namespace sluice::copies {

constinit bool another_serves = false;

namespace {

// The object that a place belongs to, as the loader has it.
struct Search {
  uintptr_t place;
  const ElfW(Phdr) * parts = nullptr;  // which tell objects apart; null: there is no such object
  const char* name = nullptr;
  bool is_copy = false;
};

int look(dl_phdr_info* object, size_t, void* context) noexcept {
  auto& search = *static_cast<Search*>(context);
  const ElfW(Phdr)* const end = object->dlpi_phdr + object->dlpi_phnum;
  for (const ElfW(Phdr)* part = object->dlpi_phdr; part != end; ++part) {
    if (part->p_type != PT_LOAD || search.place - object->dlpi_addr - part->p_vaddr >= part->p_memsz) continue;
    search.parts = object->dlpi_phdr;
    search.name = object->dlpi_name;
    break;
  }
  if (search.parts == nullptr) return 0;
  for (const ElfW(Phdr)* part = object->dlpi_phdr; part != end; ++part) {
    if (part->p_type != PT_NOTE) continue;
    const auto* const notes = reinterpret_cast<const char*>(object->dlpi_addr + part->p_vaddr);
    search.is_copy = search.is_copy || !find_copy_note(notes, part->p_memsz, part->p_align).empty();
  }
  return 1;
}

template <typename Function>
Search object_of(Function* function) noexcept {
  Search search{reinterpret_cast<uintptr_t>(function)};
  (void)dl_iterate_phdr(look, &search);
  return search;
}

bool is_program(const Search& object) noexcept {
  return object.name != nullptr && *object.name == '\0';
}

std::string_view name_of(const Search& object) noexcept {
  return is_program(object) ? "the program itself" : object.name;
}

}  // namespace

bool reports_are_wanted() noexcept {
  return options_want_statistics() || options.profile[0] != '\0' || options.guard_rate != 0 || options.attach;
}

void start() noexcept {
  const Search own = object_of(start);
  if (own.parts == nullptr || is_program(own)) return;  // nothing comes before what the program defines
  // Not this file's malloc: a library may keep its own to itself.
  const Search serving = object_of(dlsym(RTLD_DEFAULT, "malloc"));
  if (!serving.is_copy || serving.parts == own.parts) return;
  another_serves = true;
  if (!secure && !reports_are_wanted()) return;
  char line[512];
  Print(line, sizeof line, STDERR_FILENO)
      .text("sluice: two copies of Sluice are in this process: that of ")
      .text(name_of(serving))
      .text(" serves and reports, that of ")
      .text(name_of(own))
      .text(" stands aside\n");
}

}  // namespace sluice::copies
