// The mark that each copy of the library leaves in the file that it is linked into, libsluice.so or a program with
// libsluice.a: an ELF note, which is there after `strip`, too, in the file and in memory. Its text is the version. Open
// it with preload/copies.hpp, which writes it and looks for it, or with the command, which reads it in programs.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstring>
#include <string_view>

#define SLUICE_COPY_NOTE_NAME "Sluice"

namespace sluice {

inline constexpr unsigned copy_note_type = 1;

// Returns: the version of the copy, if a segment of notes (PT_NOTE) has its mark; else an empty text. `alignment` is
// the segment's.
inline std::string_view find_copy_note(const char* notes, size_t size, size_t alignment) noexcept {
  constexpr std::string_view wanted(SLUICE_COPY_NOTE_NAME, sizeof SLUICE_COPY_NOTE_NAME);
  const size_t step = alignment == 8 ? 8 : 4;
  const auto rounded = [step](size_t length) { return (length + step - 1) / step * step; };
  ElfW(Nhdr) head;
  while (size >= sizeof head) {
    std::memcpy(&head, notes, sizeof head);
    const size_t text_at = rounded(sizeof head + head.n_namesz);
    const size_t whole = rounded(text_at + head.n_descsz);
    if (text_at > size || head.n_descsz > size - text_at) return {};
    if (head.n_type == copy_note_type && std::string_view(notes + sizeof head, head.n_namesz) == wanted)
      return {notes + text_at, strnlen(notes + text_at, head.n_descsz)};
    if (whole >= size) return {};
    notes += whole;
    size -= whole;
  }
  return {};
}

}  // namespace sluice
