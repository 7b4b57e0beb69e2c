// A thousand small blocks allocated, then freed in the order of their allocation, again and again: requests
// served and dropped in turn. Open it for what flushing and refilling a cache of freed blocks costs.
#include "batches.hpp"

int main(int argc, char** argv) {
  return scenario::run_batches<scenario::Order::of_allocation>(argc, argv, "fifo");
}
