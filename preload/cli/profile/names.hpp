// Names of functions: demangled, short, and whether one belongs to an allocator or a container. Open it when a function
// is called something odd, or when the wrong function counts as the one that allocates.
#pragma once

#include <string>
#include <string_view>

namespace sluice::cli::profile {

// Returns: the name that the source has, of a symbol of C++ or Rust; any other name as it is.
std::string demangled(const std::string& symbol);

// Returns: the name without its parameters, what it returns and the arguments of templates:
// "void ns::f<int>(char) const" becomes "ns::f<>".
std::string short_name(std::string_view name);

// Whether a function, by its short name, hands memory on to the one that asks for it: operator new, what is called as
// the malloc family is (xmalloc, g_malloc, PyMem_Malloc), and all of the namespaces std, __gnu_cxx, and Rust's alloc,
// core and hashbrown.
bool hands_memory_on(std::string_view short_name);

// Whether a function, by its short name, is one of the allocator itself. Traces leave these out where they can tell its
// code (os/linux_own_code.hpp), which they cannot where a program's link-time optimization has compiled it, or on
// macOS.
bool is_inside_allocator(std::string_view short_name);

}  // namespace sluice::cli::profile
