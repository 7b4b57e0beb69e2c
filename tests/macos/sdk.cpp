// Compiles with the headers of one macOS alone (scripts/port macos-sdks): a compiler that takes others is not what the
// test believes it to be.
#include <Availability.h>

static_assert(__MAC_OS_X_VERSION_MAX_ALLOWED / 10000 == EXPECTED_MACOS);
