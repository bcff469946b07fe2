// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/panels.hpp"

#include <gtest/gtest.h>

namespace tessera::ops {
namespace {

TEST(TallPanels, LeaveARestOfWholeSectorsToANarrowerKernel) {
  EXPECT_EQ(features_of_widest(192, 128, Precision::bf16), 128);
  EXPECT_EQ(features_of_widest(320, 128, Precision::bf16), 256);
  EXPECT_EQ(features_of_widest(136, 128, Precision::fp32), 128);
  EXPECT_EQ(features_of_widest(264, 128, Precision::fp32), 256);
}

TEST(TallPanels, AreOfOneKernelWhereARestIsNoSectorsOrMostOfAPanel) {
  EXPECT_EQ(features_of_widest(136, 128, Precision::bf16), 136);
  EXPECT_EQ(features_of_widest(264, 128, Precision::fp16), 264);
  EXPECT_EQ(features_of_widest(257, 128, Precision::fp32), 257);
  EXPECT_EQ(features_of_widest(224, 128, Precision::fp32), 224);
  EXPECT_EQ(features_of_widest(64, 128, Precision::fp32), 64);
}

TEST(TallPanels, HaveTheSameWidth) {
  const TallPanels panels(0, 264, 128, Precision::bf16);
  EXPECT_EQ(panels.count, 3);
  EXPECT_EQ(panels.features, 88);
}

}  // namespace
}  // namespace tessera::ops
