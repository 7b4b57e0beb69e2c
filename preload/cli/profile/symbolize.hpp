// Gives the locations of a profile their functions. Open it to change what stands where a function is unknown.
#pragma once

#include <string>
#include <vector>

#include "model.hpp"

namespace sluice::cli::profile {

// Effects: adds lines to the locations that have none, from the files of this machine. A location whose function is
// unknown gets one named after its file and where it begins there, "libx.so.1+0x1234". Returns: what is to be known of
// it, a line for each file that is missing or is another one now.
std::vector<std::string> symbolize(Profile& profile);

}  // namespace sluice::cli::profile
