// A concept for tests of what may stand in a constant expression, and what may not.
#pragma once

#include <type_traits>

namespace library_test {

// Whether calling the function is a constant expression.
template <class Function>
concept Constant = requires {
  typename std::bool_constant<(Function{}(), true)>;
};

}  // namespace library_test
