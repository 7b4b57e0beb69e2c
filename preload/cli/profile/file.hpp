// Profiles on disk: plain or compressed by gzip, and errors that name the file. Open it when a file is refused.
#pragma once

#include <string>
#include <string_view>

#include "model.hpp"

namespace sluice::cli::profile {

// What a file holds at most, uncompressed: a few bytes that stand for gigabytes are no profile.
inline constexpr size_t largest_profile = size_t{256} << 20;

// Effects: reads a profile of memory; "-" is standard input. Throws: CommandError (2) when it cannot be read or is
// none.
Profile read_profile(const std::string& file);

// Returns: the profile that the bytes of a file hold. Throws: CommandError (2), naming it as `source`.
Profile parsed_profile(const std::string& source, std::string_view bytes);

// Throws: std::bad_alloc.
std::string gzipped(std::string_view bytes);

}  // namespace sluice::cli::profile
