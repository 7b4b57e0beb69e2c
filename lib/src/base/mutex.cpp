// See mutex.hpp.
#include "base/mutex.hpp"

namespace sluice {

constinit thread_local ThreadAnchor thread_anchor __attribute__((tls_model("initial-exec"))){};

}  // namespace sluice
