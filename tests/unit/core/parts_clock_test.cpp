// SPDX-License-Identifier: Apache-2.0
#include "core/parts_clock.hpp"

#include <gtest/gtest.h>

namespace tessera {
namespace {

void work() {
  const TimedPart outer("outer");
  { const TimedPart inner("inner"); }
  const TimedPart again("inner");
}

TEST(PartsClock, HasEachPartOnceInTheOrderInWhichTheyBegan) {
  const PartsClock clock;
  work();
  work();
  ASSERT_EQ(clock.parts().size(), 2u);
  EXPECT_EQ(clock.parts()[0].name, "outer");
  EXPECT_EQ(clock.parts()[1].name, "inner");
  for (const PartsClock::Part& part : clock.parts()) EXPECT_GE(part.microseconds, 0);
}

TEST(PartsClock, CountsOnlyWhileItLivesAndOnlyTheInnermost) {
  work();
  const PartsClock outer;
  {
    const PartsClock inner;
    work();
    EXPECT_EQ(inner.parts().size(), 2u);
  }
  EXPECT_TRUE(outer.parts().empty());
}

}  // namespace
}  // namespace tessera
