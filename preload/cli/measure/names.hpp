// Finds what the user named on the command line. Open it for how a misspelt name is answered.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// "; did you mean 'compare'?" for "comapre"; empty when no name among `known` is near.
std::string suggestion(std::string_view name, const std::vector<std::string>& known);

/// The place of `name` among `known`. Throws std::invalid_argument, which names the nearest one if one is near.
std::size_t index_of(const std::string& name, const std::vector<std::string>& known, std::string_view kind);

/// The number of a signal that is named by its number or by its name, with SIG before it or without; 0 when there is
/// none.
int signal_named(const std::string& name);

}  // namespace bench
