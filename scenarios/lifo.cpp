// A thousand small blocks allocated, then freed in reverse order, again and again: a call tree that unwinds.
// Open it for what a cache of freed blocks gains when the last one freed is the first one wanted.
#include "batches.hpp"

int main(int argc, char** argv) {
  return scenario::run_batches<scenario::Order::reverse>(argc, argv, "lifo");
}
