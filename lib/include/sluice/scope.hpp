// sluice::scope: places what a thread allocates in its stack arena, for the time of a block of code. Open it when a
// part of a program makes many temporaries by plain malloc or new, and cannot be rewritten to use frames.
//
// Nothing changes for the objects: each still ends by its own free or delete, at any time and on any thread, also long
// after the scope. Without Sluice the class does nothing.
#pragma once

#include "sluice/sluice.h"

namespace sluice {

enum class routing : unsigned {
  on = SLUICE_ROUTE,     // to the stack arena
  off = SLUICE_NOROUTE,  // to the pools: what lives long, allocated inside a scope that routes
};

// Effects: opens a scope; its destructor leaves it, also when an exception passes.
// Thread-safety: constructed and destroyed on one thread. On another thread the destructor does nothing but count.
class scope {
 public:
  explicit scope(routing where = routing::on) noexcept {
    if (sluice_scope_enter != nullptr) open_ = sluice_scope_enter(&scope_, static_cast<unsigned>(where)) == 0;
  }
  ~scope() {
    if (sluice_scope_enter != nullptr) sluice_scope_leave(&scope_);
  }
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;

  // Returns: whether the scope took effect; see sluice_scope_enter for why it may not.
  bool in_effect() const noexcept { return open_; }

 private:
  sluice_scope scope_;
  bool open_ = false;
};

}  // namespace sluice
