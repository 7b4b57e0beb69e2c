// inline_vector of numbers and of objects of 32 bytes. The cases stand in vector_micro.hpp.
#include "vector_micro.hpp"

void micro::add_all() {
  add_vectors<int>();
  add_vectors<Pod32>();
}
