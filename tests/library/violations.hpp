// Records what a checked pool, stack or arena reports instead of stopping the program. Open it to test a check.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sluice/violation.hpp"

namespace library_test {

// While one of these exists, violations of any thread-free test are recorded, and the operation is left out. What has
// not been taken at its end is a failure of the test.
class Violations {
 public:
  Violations() : before_(sluice::set_violation_handler(&record)) { found().clear(); }
  ~Violations() {
    sluice::set_violation_handler(before_);
    for (const sluice::violation& violation : found())
      ADD_FAILURE() << violation.component << ": " << sluice::to_string(violation.kind);
    found().clear();
  }
  Violations(const Violations&) = delete;
  Violations& operator=(const Violations&) = delete;

  static bool none() { return found().empty(); }

  // Returns: the only violation since the last take; a failure of the test if there is none or more than one.
  static sluice::violation take() {
    EXPECT_EQ(found().size(), 1u);
    const sluice::violation only = found().empty() ? sluice::violation{} : found().back();
    found().clear();
    return only;
  }
  // Expects one violation, of the kind.
  static void expect(sluice::violation_kind kind) {
    ASSERT_EQ(found().size(), 1u);
    EXPECT_STREQ(sluice::to_string(found().back().kind), sluice::to_string(kind));
    found().clear();
  }

 private:
  static std::vector<sluice::violation>& found() {
    static std::vector<sluice::violation> violations;
    return violations;
  }
  static void record(const sluice::violation& violation) { found().push_back(violation); }

  sluice::violation_handler before_;
};

}  // namespace library_test
