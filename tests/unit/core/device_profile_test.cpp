// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/device_profile.hpp"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "core/absent_gpu.hpp"
#include "core/device_rates.hpp"
#include "support/errors.hpp"
#include "tessera/core/error.hpp"

namespace tessera {
namespace {

const DeviceProfile& h200() { return built_in_profile("h200"); }

TEST(DeviceProfileTest, BuiltInOnesAreCompleteAndSayWhereTheyAreFrom) {
  for (const DeviceProfile& profile : built_in_profiles()) {
    EXPECT_NO_THROW(profile.validate(profile.name));
    const bool measured = profile.source.starts_with("measured");
    EXPECT_EQ(measured, profile.name == "NVIDIA H200") << profile.name;
    EXPECT_EQ(profile.wgmma_bf16_per_us > 0, profile.compute_capability == 90) << profile.name;
    EXPECT_LT(profile.memory_gather.back().bytes_per_us, profile.memory_bytes_per_us);
    EXPECT_LE(profile.memory_gather.back().bytes_per_us, profile.l2_gather.back().bytes_per_us);
  }
  EXPECT_EQ(h200().name, h200_traits().name);
  EXPECT_EQ(traits_of(h200()).processors, h200_traits().processors);
  EXPECT_EQ(traits_of(h200()).memory_bytes_per_us, h200_traits().memory_bytes_per_us);
}

TEST(DeviceProfileTest, AreFoundByAPartOfTheirName) {
  EXPECT_EQ(built_in_profile("A100").compute_capability, 80);
  EXPECT_EQ(built_in_profile("4090").processors, 128);
  for (const char* unknown : {"", "cray"}) {
    try {
      built_in_profile(unknown);
      FAIL() << unknown;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("NVIDIA L40S"), std::string::npos);
    }
  }
}

TEST(DeviceProfileTest, NumbersThatCannotBeAreNamed) {
  const auto problem = [](auto&& change) {
    DeviceProfile profile = h200();
    change(profile);
    try {
      profile.validate("mine.json");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_data);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(problem([](DeviceProfile& p) { p.wgmma_bf16_per_us = 0; }), "");
  EXPECT_EQ(problem([](DeviceProfile& p) { p.driver.clear(); }), "");
  EXPECT_NE(problem([](DeviceProfile& p) { p.processors = 0; }).find("mine.json: processors is 0"),
            std::string::npos);
  EXPECT_NE(problem([](DeviceProfile& p) { p.name.clear(); }).find("name is empty"),
            std::string::npos);
  EXPECT_NE(problem([](DeviceProfile& p) { p.mma_bf16_per_us = -1; }).find("mma_bf16_per_us is -1"),
            std::string::npos);
  EXPECT_NE(problem([](DeviceProfile& p) {
              p.latency_us = std::numeric_limits<double>::quiet_NaN();
            }).find("latency_us is nan"),
            std::string::npos);
  EXPECT_NE(problem([](DeviceProfile& p) { p.l1_gather.clear(); }).find("l1_gather has no rate"),
            std::string::npos);
  EXPECT_NE(problem([](DeviceProfile& p) {
              p.l2_gather = {{512, 1e6}, {128, 1e6}};
            }).find("l2_gather has a row of 128 bytes after one of 512"),
            std::string::npos);
  EXPECT_NE(problem([](DeviceProfile& p) {
              p.memory_gather = {{128, 0}};
            }).find("a rate of 0"),
            std::string::npos);
}

TEST(DeviceProfileTest, RatesOfLengthsBetweenAreBetween) {
  const GatherRates rates = {{64, 1e6}, {128, 3e6}, {512, 4e6}};
  EXPECT_EQ(rate_of(rates, 16), 1e6);
  EXPECT_EQ(rate_of(rates, 64), 1e6);
  EXPECT_EQ(rate_of(rates, 96), 2e6);
  EXPECT_EQ(rate_of(rates, 512), 4e6);
  EXPECT_EQ(rate_of(rates, 1 << 20), 4e6);
}

TEST(DeviceProfileTest, ScalingFollowsWhatTheDriverTells) {
  DeviceTraits half = h200_traits();
  EXPECT_EQ(scaled_profile(h200(), half), h200());
  half.processors /= 2;
  const DeviceProfile fewer = scaled_profile(h200(), half);
  EXPECT_EQ(fewer.l2_gather.back().bytes_per_us, h200().l2_gather.back().bytes_per_us / 2);
  EXPECT_EQ(fewer.mma_bf16_per_us, h200().mma_bf16_per_us / 2);
  EXPECT_EQ(fewer.memory_gather, h200().memory_gather);
  EXPECT_EQ(fewer.source, "scaled from NVIDIA H200: " + h200().source);
  half = h200_traits();
  half.memory_bytes_per_us /= 4;
  half.l2_bytes = 0;  // not told
  const DeviceProfile slower = scaled_profile(h200(), half);
  EXPECT_EQ(slower.copy_bytes_per_us, h200().copy_bytes_per_us / 4);
  EXPECT_EQ(slower.memory_gather.back().bytes_per_us, h200().memory_gather.back().bytes_per_us / 4);
  EXPECT_EQ(slower.l1_gather, h200().l1_gather);
  EXPECT_EQ(slower.l2_bytes, h200().l2_bytes);
}

TEST(DeviceProfileTest, TheNearestIsTheSameOrTheNewestThatIsNoNewer) {
  const auto nearest = [](const char* name, int compute_capability) {
    return nearest_profile({name, compute_capability}).name;
  };
  EXPECT_EQ(nearest("NVIDIA H100 80GB HBM3", 90), "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(nearest("NVIDIA H200 NVL", 90), "NVIDIA H200");
  EXPECT_EQ(nearest("NVIDIA A10", 86), "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(nearest("NVIDIA L4", 89), "NVIDIA L40S");
  EXPECT_EQ(nearest("NVIDIA GeForce RTX 5090", 120), "NVIDIA B200");
}

TEST(DeviceProfileTest, AnAbsentGpuIsTheOneThatCostsAskAbout) {
  EXPECT_EQ(AbsentGpu::current(), nullptr);
  {
    const AbsentGpu outer(built_in_profile("a100"));
    EXPECT_EQ(device_traits({DeviceKind::cuda, 0}).processors, 108);
    {
      const AbsentGpu inner(built_in_profile("l40s"));
      EXPECT_EQ(device_traits({DeviceKind::cuda, 3}).processors, 142);
    }
    EXPECT_EQ(AbsentGpu::current(), &outer);
  }
  EXPECT_EQ(AbsentGpu::current(), nullptr);
}

}  // namespace
}  // namespace tessera
