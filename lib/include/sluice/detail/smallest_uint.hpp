// The smallest unsigned integer that holds a number. Open it when an index or a count should not take eight bytes.
#pragma once

#include <cstdint>
#include <type_traits>

namespace sluice::detail {

template <std::uint64_t Largest>
using smallest_uint =
    std::conditional_t<(Largest <= 0xff), std::uint8_t,
                       std::conditional_t<(Largest <= 0xffff), std::uint16_t,
                                          std::conditional_t<(Largest <= 0xffffffff), std::uint32_t, std::uint64_t>>>;

// A counter up to a number that changes with every operation. 32 bits at least: processors pass those from a store to
// the next load without going through the cache, which they do not for 8 and 16.
template <std::uint64_t Largest>
using counter_to = std::conditional_t<(Largest <= 0xffffffff), std::uint32_t, std::uint64_t>;

}  // namespace sluice::detail
