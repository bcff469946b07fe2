// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/random.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace tessera {
namespace {

// The known answers that Random123, Philox's reference implementation, publishes.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, SeedStepLayerAndElementAllMatter) {
  const auto base = Random(1, 2, 3).bits64(4);
  EXPECT_NE(base, Random(2, 2, 3).bits64(4));
  EXPECT_NE(base, Random(1, 3, 3).bits64(4));
  EXPECT_NE(base, Random(1, 2, 4).bits64(4));
  EXPECT_NE(base, Random(1, 2, 3).bits64(5));
  EXPECT_NE(Random(std::uint64_t{1} << 32).bits64(0), Random(0).bits64(0));
  EXPECT_NE(Random(1).bits64(std::uint64_t{1} << 32), Random(1).bits64(0));
  EXPECT_EQ(base, Random(1, 2, 0).at_step(3).bits64(4));
}

TEST(Random, UniformAndNormalHaveTheirMoments) {
  constexpr int count = 100000;
  const Random random(7);
  double sum = 0, normal_sum = 0, normal_squares = 0;
  for (int i = 0; i < count; ++i) {
    const double uniform = random.uniform(static_cast<std::uint64_t>(i));
    ASSERT_GE(uniform, 0);
    ASSERT_LT(uniform, 1);
    sum += uniform;
    const double normal = random.normal(static_cast<std::uint64_t>(i));
    ASSERT_TRUE(std::isfinite(normal));
    normal_sum += normal;
    normal_squares += normal * normal;
  }
  EXPECT_NEAR(sum / count, 0.5, 0.005);
  EXPECT_NEAR(normal_sum / count, 0, 0.02);
  EXPECT_NEAR(normal_squares / count, 1, 0.03);
}

TEST(Random, BelowStaysBelowAndReachesBothEnds) {
  const Random random(3);
  std::array<int, 7> seen{};
  for (std::uint64_t i = 0; i < 7000; ++i) ++seen.at(random.below(i, 7));
  for (const int times : seen) EXPECT_NEAR(times, 1000, 150);
  EXPECT_EQ(random.below(0, 1), 0u);
}

}  // namespace
}  // namespace tessera
