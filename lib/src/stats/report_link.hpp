// A file for a dump whose name may be a symbolic link. Open it when a dump is refused, or lands where a link leads.
#pragma once

#include <cstddef>

namespace sluice::stats {

// In place of an errno value: the name is a link that is not followed.
inline constexpr int link_of_others = 1 << 16;

// Effects: opens the file as open() does. A link is followed when this user or root has made it, when nobody but these
// can write to its folder, and in /dev and /proc. Any other may lead to a file that whoever has planted it could not
// write himself. `path` is absolute, and changed for a moment; `memory` serves for what a link holds. Returns: a
// descriptor, or -1 with *error set.
int open_in_place(char* path, int flags, char* memory, size_t capacity, int* error) noexcept;

}  // namespace sluice::stats
