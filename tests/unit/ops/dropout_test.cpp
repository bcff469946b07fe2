// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/dropout.hpp"

#include <gtest/gtest.h>

namespace tessera::ops {
namespace {

TEST(Dropout, DrawsFourElementsFromOneCounter) {
  const Dropout dropout{0.5, Random(7, 2, 3)};
  for (std::uint64_t element = 0; element < 64; ++element) {
    const std::uint32_t word = Random(7, 2, 3).bits(element / 4)[element % 4];
    EXPECT_EQ(dropout.word(element), word);
    EXPECT_EQ(dropout.factor(element), word >= 0x80000000u ? 2.0 : 0.0);
  }
}

TEST(Dropout, DropsItsShare) {
  constexpr std::uint64_t elements = 100000;
  for (const double share : {0.1, 0.5, 0.6, 0.9}) {
    const Dropout dropout{share, Random(11)};
    double dropped = 0;
    double sum = 0;
    for (std::uint64_t element = 0; element < elements; ++element) {
      const double factor = dropout.factor(element);
      dropped += factor == 0 ? 1 : 0;
      sum += factor;
    }
    EXPECT_NEAR(dropped / elements, share, 0.01);
    EXPECT_NEAR(sum / elements, 1, 0.05);
  }
}

TEST(Dropout, KeepsOrDropsEverythingAtTheEnds) {
  const Dropout none{0, Random(1)};
  const Dropout all{1, Random(1)};
  EXPECT_FALSE(none.active());
  for (std::uint64_t element = 0; element < 1000; ++element) {
    EXPECT_EQ(none.factor(element), 1.0);
    EXPECT_EQ(all.factor(element), 0.0);
  }
}

TEST(Dropout, HandsItsConstantsToKernels) {
  const Dropout dropout{0.25, Random(0x123456789ABCDEF0u, 5, 6)};
  const DropoutConstants constants = dropout.constants();
  EXPECT_EQ(constants.key[0], 0x9ABCDEF0u);
  EXPECT_EQ(constants.key[1], 0x12345678u);
  EXPECT_EQ(constants.layer, 5u);
  EXPECT_EQ(constants.step, 6u);
  EXPECT_EQ(constants.threshold, 0x40000000u);
  EXPECT_DOUBLE_EQ(constants.kept_factor, 4.0 / 3);
}

}  // namespace
}  // namespace tessera::ops
