// SPDX-License-Identifier: Apache-2.0
#include "core/device_traits.hpp"

#include <gtest/gtest.h>

#include "ops/plan/tuning.hpp"

namespace tessera::ops {
namespace {

TEST(DeviceTraitsTest, ExplanationsSayWhereCostsAreScaled) {
  EXPECT_EQ(note_on_costs(h200_traits()), "");
  DeviceTraits other = h200_traits();
  other.name = "NVIDIA A100-SXM4-40GB";
  other.compute_capability = 80;
  other.processors = 108;
  other.clock_mhz = 1410;
  other.memory_bytes_per_us = 1.555e6;
  EXPECT_EQ(note_on_costs(other),
            "costs of an NVIDIA H200, scaled to 0.58 times its caches and 0.32 times its memory, "
            "until 'tessera calibrate' measures this GPU");
}

TEST(DeviceTraitsTest, StatedBandwidthsAreFoundByNameAndComputeCapability) {
  EXPECT_EQ(stated_memory_bytes_per_us("NVIDIA H200 NVL", 90), 4.8e6);
  EXPECT_EQ(stated_memory_bytes_per_us("NVIDIA H200", 80), 0);
  EXPECT_EQ(stated_memory_bytes_per_us("a GPU", 90), 0);
}

TEST(DeviceTraitsTest, TraitsOfThisMachinesGpu) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const DeviceTraits& traits = device_traits({DeviceKind::cuda, 0});
  EXPECT_FALSE(traits.name.empty());
  EXPECT_GT(traits.processors, 0);
  EXPECT_GT(traits.clock_mhz, 100);
  EXPECT_GT(traits.memory_bytes_per_us, 1e4);
  EXPECT_GE(traits.compute_capability, 80);
  EXPECT_GT(traits.l2_bytes, 1 << 20);
  EXPECT_GE(traits.shared_bytes_per_processor, 48 << 10);
}

}  // namespace
}  // namespace tessera::ops
