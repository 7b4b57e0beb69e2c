// See mutex.hpp.
#include "base/mutex.hpp"

namespace sluice {

constinit std::atomic<uint32_t> fork_patience{least_fork_patience};
#if !defined(SLUICE_THREAD_SLOTS)
constinit thread_local ThreadAnchor thread_anchor __attribute__((tls_model("initial-exec"))){};
#endif

}  // namespace sluice
