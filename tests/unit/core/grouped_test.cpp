// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/grouped.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Grouped, ThreeDigitsStandTogether) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-123456), "-123,456");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
}

}  // namespace
}  // namespace tessera
