// What happens when a check of the library finds a mistake: the handler, its replacement, the message.
#include "sluice/violation.hpp"

#include <gtest/gtest.h>

#include "sluice/detail/checks.hpp"
#include "violations.hpp"

namespace {

using sluice::violation;
using sluice::violation_kind;

TEST(Violation, StopsTheProgramWithALineThatNamesTheObject) {
  const sluice::detail::object_name<sluice::checked> name("sprites");
  int object = 0, block = 0;
  EXPECT_DEATH(report_block(violation_kind::double_release, "stack_pool", name, &object, &block),
               "sluice: stack_pool \"sprites\" \\(0x[0-9a-f]+\\): block 0x[0-9a-f]+ released twice");
  EXPECT_DEATH(report(violation_kind::leak, "stack_pool", name, &object, 3),
               "stack_pool \"sprites\" \\(0x[0-9a-f]+\\): 3 blocks not given back at destruction");
  EXPECT_DEATH(report(violation_kind::foreign, "index_stack", name, &object, 17), ": 17 is not from here");
}

TEST(Violation, OfAnObjectWithoutANameIsToldByItsAddress) {
  int object = 0;
  EXPECT_DEATH(report(violation_kind::leak, "pool", sluice::detail::object_name<sluice::checked>(nullptr), &object, 1),
               "sluice: pool \\(0x[0-9a-f]+\\): 1 blocks");
}

TEST(Violation, GoesToTheHandlerThatIsSetAndBackToTheOneBefore) {
  library_test::Violations violations;
  int object = 0;
  report(violation_kind::foreign, "handle_stack", sluice::detail::object_name<sluice::checked>("tiles"), &object, 5);
  const violation found = violations.take();
  EXPECT_EQ(found.kind, violation_kind::foreign);
  EXPECT_STREQ(found.component, "handle_stack");
  EXPECT_STREQ(found.name, "tiles");
  EXPECT_EQ(found.object, &object);
  EXPECT_EQ(found.address, nullptr);
  EXPECT_EQ(found.value, 5u);
  const sluice::violation_handler recorder = sluice::set_violation_handler(nullptr);
  EXPECT_DEATH(report(violation_kind::leak, "pool", sluice::detail::object_name<sluice::checked>(""), &object, 1),
               "pool");
  sluice::set_violation_handler(recorder);
}

TEST(Violation, PartsOfTheCheckedModeAreEmptyInTheUncheckedMode) {
  struct Parts {
    [[no_unique_address]] sluice::detail::object_name<sluice::unchecked> name;
    [[no_unique_address]] sluice::detail::occupancy<1000, sluice::unchecked> used;
    char member;
  };
  EXPECT_EQ(sizeof(Parts), 1u);
}

}  // namespace
