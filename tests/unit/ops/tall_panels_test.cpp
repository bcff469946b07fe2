// SPDX-License-Identifier: Apache-2.0
#include "ops/windows/panels.hpp"

#include <gtest/gtest.h>

namespace tessera::ops {
namespace {

constexpr std::int64_t widest = 128;

template <class Check>
void for_all_widths(const Check& check) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    for (std::int64_t features = 1; features <= 5 * widest; ++features) {
      SCOPED_TRACE(::testing::Message() << features << " in " << to_string(precision));
      check(features, precision);
    }
  }
}

TEST(TallPanels, CoverAllFeaturesByNoMoreThanTheWidestKernelTakes) {
  for_all_widths([](std::int64_t features, Precision precision) {
    const TallPanels panels(0, features, widest, precision);
    EXPECT_LE(panels.features, widest);
    EXPECT_GE(panels.count * panels.features, features);
    EXPECT_LT((panels.count - 1) * panels.features, features) << "none is empty";
  });
}

TEST(TallPanels, LeaveOnlyWholeSectorsToANarrowerKernel) {
  for_all_widths([](std::int64_t features, Precision precision) {
    const std::int64_t wide = features_of_widest(features, widest, precision);
    const std::int64_t rest = features - wide;
    EXPECT_GT(wide, 0);
    EXPECT_EQ(rest % sector_features(precision), 0);
    EXPECT_LE(rest, widest / 2) << "more is no less work for a narrower kernel";
    EXPECT_TRUE(rest == 0 || wide % widest == 0);
  });
}

}  // namespace
}  // namespace tessera::ops
