// main of the GoogleTest programs of this folder: nothing is tested unless libsluice.so serves the process.
#include <gtest/gtest.h>

#include "subject.hpp"

int main(int argc, char** argv) {
  subject::require_sluice();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
