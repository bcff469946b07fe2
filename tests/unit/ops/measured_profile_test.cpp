// SPDX-License-Identifier: Apache-2.0
#include "ops/plan/measured_profile.hpp"

#include <gtest/gtest.h>

#include "core/absent_gpu.hpp"
#include "ops/plan/counts.hpp"
#include "support/expect_error.hpp"
#include "support/files.hpp"
#include "tessera/io/device_profile.hpp"

namespace tessera::ops {
namespace {

class MeasuredProfileTest : public ::testing::Test {
 protected:
  MeasuredProfileTest() {
    measured_.driver = "580.1";
    measured_.build = this_build();
    measured_.copy_bytes_per_us = 1e6;
  }

  ExpectedProfile read(const DeviceProfile& written) const {
    test::write_file(file_, io::device_profile_text(written));
    return read_measured_profile(file_, expected_, "580.1");
  }

  test::TemporaryFolder folder_;
  std::string file_ = folder_ / "gpu.tsv";
  DeviceProfile expected_ = built_in_profile("a100");
  DeviceProfile measured_ = expected_;
};

TEST_F(MeasuredProfileTest, IsUsedForTheSameGpuDriverAndBuild) {
  const ExpectedProfile found = read(measured_);
  EXPECT_TRUE(found.measured);
  EXPECT_EQ(found.why_not, "");
  EXPECT_EQ(found.profile.copy_bytes_per_us, 1e6);
}

TEST_F(MeasuredProfileTest, ElseTheBuiltInOneIsAndWhyIsSaid) {
  const auto why_not = [this](auto&& change) {
    DeviceProfile other = measured_;
    change(other);
    const ExpectedProfile found = read(other);
    EXPECT_FALSE(found.measured);
    EXPECT_EQ(found.profile, expected_);
    return found.why_not;
  };
  EXPECT_EQ(why_not([](DeviceProfile& p) { p.driver = "570.9"; }),
            file_ + " was measured with driver 570.9");
  EXPECT_EQ(why_not([](DeviceProfile& p) { p.build = "0.0.1"; }),
            file_ + " was measured by build 0.0.1");
  EXPECT_EQ(why_not([](DeviceProfile& p) { p.name = "a GPU"; }),
            file_ + " is of a GPU with 108 processors");
  EXPECT_EQ(why_not([](DeviceProfile& p) { p.processors = 42; }),
            file_ + " is of NVIDIA A100-SXM4-80GB with 42 processors");
}

TEST_F(MeasuredProfileTest, FilesThatAreNotThereOrDamaged) {
  EXPECT_EQ(read_measured_profile("", expected_, "580.1").profile, expected_);
  const ExpectedProfile none = read_measured_profile(folder_ / "none", expected_, "580.1");
  EXPECT_FALSE(none.measured);
  test::write_file(file_, "tessera device profile\t99\n");
  EXPECT_EQ(read_measured_profile(file_, expected_, "580.1").why_not,
            file_ + " is of another version");
  test::write_file(file_, "tessera device profile\t1\nname\tX\n");
  testing::expect_error(ErrorCode::bad_data, {"source is missing", "tessera calibrate"},
                        [this] { read_measured_profile(file_, expected_, "580.1"); });
}

TEST_F(MeasuredProfileTest, OnlyGpusHaveOne) {
  testing::expect_error(ErrorCode::invalid_argument, {"a CPU has no profile", "cuda"},
                        [] { measured_profile_path({}); });
  if (num_gpus() > 0) return;
  testing::expect_error(ErrorCode::backend_unavailable, {"no GPU to measure"},
                        [] { calibrate({}); });
}

TEST_F(MeasuredProfileTest, CostsGoByTheProfile) {
  const DeviceRatio same = ratio_to_h200(h200_traits());
  EXPECT_EQ(same.processors, 1);
  EXPECT_EQ(same.memory, 1);
  DeviceTraits smaller = h200_traits();
  smaller.processors /= 2;
  smaller.memory_bytes_per_us /= 4;
  EXPECT_DOUBLE_EQ(ratio_to_h200(smaller).processors, 0.5);
  EXPECT_DOUBLE_EQ(ratio_to_h200(smaller).memory, 0.25);
  EXPECT_DOUBLE_EQ(gathered_us(9.6e6, smaller), 2);
  EXPECT_EQ(ratio_to_h200(h200_traits()).memory, 1);  // the last one asked about was another
  measured_.l2_gather = {{256, 2.4e6}, {1024, 2.4e6}};
  measured_.mma_bf16_per_us = 100e6;
  const AbsentGpu here(measured_);
  EXPECT_DOUBLE_EQ(ratio_to_h200(here.traits()).l1, 192.0 / 256);
  EXPECT_DOUBLE_EQ(ratio_to_h200(here.traits()).l2, 40.0 / 60);
  EXPECT_DOUBLE_EQ(ratio_to_h200(here.traits()).processors, 0.25);
  EXPECT_DOUBLE_EQ(ratio_to_h200(here.traits()).memory, measured_.copy_bytes_per_us / 4.24e6);
  EXPECT_DOUBLE_EQ(gathered_us(2.4e6, here.traits()), 1);
  EXPECT_DOUBLE_EQ(multiplied_us(100e6, here.traits()), 1);
}

TEST(CalibrateCudaTest, WhatIsMeasuredOnAGpuIsNearWhatIsExpected) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  CalibrationOptions options;
  options.date = "2026-11-20";
  const DeviceProfile found = calibrate(options);
  const DeviceProfile expected = device_profile();
  EXPECT_NO_THROW(found.validate("here"));
  EXPECT_EQ(found.name, expected.name);
  EXPECT_EQ(found.source, "measured on 2026-11-20");
  EXPECT_EQ(found.driver, driver_of_gpus());
  const auto near = [](double measured, double known, const char* what) {
    EXPECT_GT(measured, known / 4) << what;
    EXPECT_LT(measured, known * 4) << what;
  };
  for (const ProfileField& field : profile_fields()) {
    if (const auto* const rates = std::get_if<GatherRates DeviceProfile::*>(&field.member)) {
      near(rate_of(found.*(*rates), 512), rate_of(expected.*(*rates), 512), field.name);
    }
    const auto* const number = std::get_if<double DeviceProfile::*>(&field.member);
    if (number != nullptr && expected.*(*number) > 0) {
      near(found.*(*number), expected.*(*number), field.name);
    }
  }
  EXPECT_GT(rate_of(found.l1_gather, 512), rate_of(found.l2_gather, 512));
  EXPECT_GT(rate_of(found.l2_gather, 512), rate_of(found.memory_gather, 512));
  EXPECT_LE(found.replay_us, found.launch_us);
}

}  // namespace
}  // namespace tessera::ops
