// inline_vector of strings. The cases stand in vector_micro.hpp.
#include "vector_micro.hpp"

void micro::add_all() {
  add_vectors<std::string>();
}
