// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/measure.hpp"

#include <gtest/gtest.h>

#include "tessera/core/error.hpp"
#include "tessera/core/memory.hpp"

namespace tessera {
namespace {

TEST(Measure, SummarisesAnOddNumberOfSamples) {
  const Timing timing = summarise({5, 1, 3});
  EXPECT_EQ(timing.median_us, 3);
  EXPECT_EQ(timing.min_us, 1);
  EXPECT_EQ(timing.worst_us, 5);
  EXPECT_EQ(timing.mean_us, 3);
  EXPECT_EQ(timing.repeats, 3);
}

TEST(Measure, SummarisesAnEvenNumberOfSamples) {
  EXPECT_EQ(summarise({8, 2, 4, 100}).median_us, 6);
}

TEST(Measure, SummarisesNothing) { EXPECT_EQ(summarise({}).repeats, 0); }

TEST(Measure, RunsAsOftenAsAsked) {
  int runs = 0;
  MeasureOptions options;
  options.warmups = 2;
  options.repeats = 5;
  options.min_seconds = 0;
  const Timing timing = measure([&] { ++runs; }, options);
  EXPECT_EQ(runs, 7);
  EXPECT_EQ(timing.repeats, 5);
  EXPECT_LE(timing.min_us, timing.median_us);
  EXPECT_LE(timing.median_us, timing.worst_us);
}

TEST(Measure, StopsAfterTheLongestTime) {
  MeasureOptions options;
  options.warmups = 0;
  options.repeats = 1000;
  options.max_seconds = 0;
  EXPECT_EQ(measure([] {}, options).repeats, 3);
}

TEST(Measure, StopsAtTheLargestNumberOfRuns) {
  MeasureOptions options;
  options.repeats = 1;
  options.min_seconds = 1e9;
  options.max_seconds = 1e9;
  options.max_repeats = 20;
  EXPECT_EQ(measure([] {}, options).repeats, 20);
}

TEST(Measure, PassesAnExceptionOn) {
  EXPECT_THROW(measure([] { throw Error(ErrorCode::internal, "no"); }), Error);
}

TEST(Measure, TheFloorGrowsWithTheBytes) {
  EXPECT_GT(copy_bandwidth(), 0);
  EXPECT_EQ(copy_bandwidth(), copy_bandwidth()) << "measured once, then remembered";
  EXPECT_EQ(floor_us(0), 0);
  EXPECT_DOUBLE_EQ(floor_us(2000000), 2 * floor_us(1000000));
}

TEST(Measure, OnTheCpuIsTheSame) {
  int runs = 0;
  MeasureOptions options;
  options.warmups = 1;
  options.repeats = 3;
  options.min_seconds = 0;
  options.chain = 20;
  const Timing timing = measure_on(
      {}, [&](Stream) { ++runs; }, options);
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(timing.repeats, 3);
  EXPECT_EQ(timing.chain_us, 0);
}

TEST(Measure, OnAMissingGpuIsAnError) {
  const Device missing{DeviceKind::cuda, 1000};
  EXPECT_THROW(measure_on(missing, [](Stream) {}), Error);
  EXPECT_THROW(copy_bandwidth(missing), Error);
}

TEST(Measure, CudaRunsAreTimedAloneAndInAChain) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const Device device{DeviceKind::cuda, 0};
  constexpr std::size_t bytes = 1 << 12;
  Buffer<char> memory(bytes, default_memory(device));
  MeasureOptions options;
  options.warmups = 1;
  options.repeats = 5;
  options.min_seconds = 0;
  options.chain = 20;
  const Timing timing = measure_on(
      device, [&](Stream stream) { fill_zero(memory.data(), bytes, device, stream); }, options);
  EXPECT_EQ(timing.repeats, 5);
  EXPECT_GT(timing.min_us, 0);
  if (timing.median_us < chained_below_us) {
    EXPECT_GT(timing.chain_us, 0);
  }
}

TEST(Measure, CudaWorkThatCannotBeCapturedHasNoChain) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const Device device{DeviceKind::cuda, 0};
  MeasureOptions options;
  options.chain = 20;
  options.min_seconds = 0;
  const Timing timing = measure_on(
      device, [&](Stream stream) { synchronise(device, stream); }, options);
  EXPECT_EQ(timing.chain_us, 0);
  // The failed capture has left nothing behind.
  EXPECT_GT(measure_on(
                device, [](Stream) {}, options)
                .repeats,
            0);
}

TEST(Measure, CudaFloorIsThatOfACopy) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const Device device{DeviceKind::cuda, 0};
  EXPECT_GT(copy_bandwidth(device), 1e11);
  EXPECT_DOUBLE_EQ(floor_us(1 << 30, device), (1 << 30) / copy_bandwidth(device) * 1e6);
}

}  // namespace
}  // namespace tessera
