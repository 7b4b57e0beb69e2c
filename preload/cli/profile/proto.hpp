// Profiles as files have them: profile.proto of pprof. Open it to read or write one; model.hpp says what it holds.
#pragma once

#include <string>
#include <string_view>

#include "model.hpp"

namespace sluice::cli::profile {

// Throws: WireError that says what is wrong with it. A field that this format does not know is passed over.
Profile decoded(std::string_view message);

std::string encoded(const Profile& profile);

}  // namespace sluice::cli::profile
