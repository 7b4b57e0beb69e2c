// Finds what the user named on the command line. Open it for how a misspelt name is answered.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// The place of `name` among `known`. Throws std::invalid_argument, which names the nearest one.
std::size_t index_of(const std::string& name, const std::vector<std::string>& known, std::string_view kind);

}  // namespace bench
