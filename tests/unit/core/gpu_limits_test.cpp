// SPDX-License-Identifier: Apache-2.0
#include "core/gpu_limits.hpp"

#include <gtest/gtest.h>

#include "tessera/core/error.hpp"

namespace tessera {
namespace {

TEST(GpuLimitsText, NamesWhatAGpuDoesWithout) {
  EXPECT_EQ(parse_gpu_limits("").processors, 0);
  EXPECT_FALSE(parse_gpu_limits("").no_wgmma);
  const GpuLimits both = parse_gpu_limits("processors=64,no_wgmma");
  EXPECT_EQ(both.processors, 64);
  EXPECT_TRUE(both.no_wgmma);
  EXPECT_TRUE(parse_gpu_limits("no_wgmma").no_wgmma);
}

TEST(GpuLimitsText, RefusesWhatItDoesNotKnow) {
  for (const char* text : {"processors", "processors=", "processors=0", "processors=-1",
                           "processors=6x", "wgmma", "no_wgmma;processors=3", ","}) {
    SCOPED_TRACE(text);
    try {
      parse_gpu_limits(text);
      ADD_FAILURE() << "was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    }
  }
}

}  // namespace
}  // namespace tessera
