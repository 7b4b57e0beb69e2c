// Scopes: what sluice_scope_enter and sluice_scope_leave do. Open it to see what happens to leaves that do not match.
//
// The open scopes of a thread stand in its arena, not in the callers' storage: storage of a scope that longjmp skipped
// may be anything by now, and is never read. What a leave finds in the storage that it is given is only compared.
#pragma once

#include "sluice/sluice.h"

namespace sluice::arena {

// As in sluice/sluice.h.
int enter(sluice_scope* scope, unsigned flags) noexcept;
void leave(sluice_scope* scope) noexcept;

}  // namespace sluice::arena
