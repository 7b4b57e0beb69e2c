// See modules.hpp.
#include "profile/modules.hpp"

#include "os/process.hpp"

namespace sluice::profile {

bool Modules::map() noexcept {
  modules_ = static_cast<os::NotedModule*>(os::map_scratch(most * sizeof(os::NotedModule)));
  return modules_ != nullptr;
}

// The newest first: it is what lies there now.
bool Modules::covers(uintptr_t address) noexcept {
  if (last_ < count_ && modules_[last_].object.covers(address)) return true;
  for (size_t i = count_; i-- > 0;) {
    if (!modules_[i].object.covers(address)) continue;
    last_ = i;
    return true;
  }
  return false;
}

void Modules::note(const uintptr_t* frames, unsigned count) noexcept {
  if (modules_ == nullptr) return;
  for (unsigned i = 0; i < count; ++i) {
    if (covers(frames[i]) && os::is_still_there(modules_[last_])) continue;
    if (count_ == most) return;
    if (os::note_module(frames[i], &modules_[count_])) last_ = count_++;
  }
}

}  // namespace sluice::profile
