// See link.hpp. Compiled into libsluice-secure.so alone.
#include "heap/link.hpp"

#include "pages/canary.hpp"

namespace sluice::link_detail {

void* report_damaged_link(const void* block) noexcept {
  hardened::report_write_to_free(block);
  return nullptr;
}

}  // namespace sluice::link_detail
