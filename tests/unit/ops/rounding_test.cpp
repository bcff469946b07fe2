// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/rounding.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "tessera/core/parallel.hpp"

#include "support/bits.hpp"
#include "support/expect_error.hpp"

namespace tessera::ops {
namespace {

Matrix<float> drawn(std::int64_t rows, std::int64_t cols, std::uint32_t seed, float shift = 0.3f) {
  Matrix<float> x(rows, cols);
  for (float& value : x.span()) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(seed >> 8) / static_cast<float>(1 << 24) - shift;
  }
  return x;
}

/// `found` takes the ranges; `given` are ranges to be taken instead.
Matrix<float> rounded(const Matrix<float>& x, int bits, RoundingRange range, Device device = {},
                      const std::vector<float>& row_scale = {}, std::vector<float>* found = nullptr,
                      const std::vector<float>* given = nullptr) {
  const std::int64_t ranges = range == RoundingRange::rows      ? x.rows()
                              : range == RoundingRange::columns ? x.cols()
                                                                : 1;
  testing::OnDeviceArray<float> from(x.data(), x.size(), device), to(x.data(), x.size(), device);
  const std::vector<float> nothing(static_cast<std::size_t>(ranges * 2), -1.0f);
  testing::OnDeviceArray<float> scratch(given == nullptr ? nothing.data() : given->data(),
                                        ranges * 2, device);
  testing::OnDeviceArray<float> scale(row_scale.data(), std::ssize(row_scale), device);
  const MatrixView<const float> numbers(from.data(), x.rows(), x.cols(), device);
  const MatrixView<float> result(to.data(), x.rows(), x.cols(), device);
  const MatrixView<float> of(scratch.data(), ranges, 2, device);
  const ConstOperand factors = row_scale.empty()
                                   ? ConstOperand()
                                   : MatrixView<const float>(scale.data(), x.rows(), 1, device);
  if (given == nullptr) {
    round_to_codes(numbers, bits, range, of, result, device, {}, factors);
  } else {
    round_within(numbers, bits, range, of, result, device, {}, factors);
  }
  if (found != nullptr) {
    found->resize(static_cast<std::size_t>(ranges * 2));
    scratch.fetch(found->data());
  }
  Matrix<float> y(x.rows(), x.cols());
  to.fetch(y.data());
  return y;
}

TEST(RoundToCodes, IsOffByNoMoreThanAStepAndKeepsZero) {
  for (const RoundingRange range :
       {RoundingRange::matrix, RoundingRange::rows, RoundingRange::columns}) {
    for (int bits = 1; bits <= 16; ++bits) {
      Matrix<float> x = drawn(33, 17, 5);
      x(3, 4) = 0;
      const Matrix<float> y = rounded(x, bits, range);
      // The zero among the steps moves the ends of the range by up to half a step.
      const float step = 1.0f / static_cast<float>((1 << bits) - 1);
      for (std::int64_t i = 0; i < x.size(); ++i) {
        ASSERT_LE(std::abs(y.data()[i] - x.data()[i]), step * 1.01f + 1e-6f) << bits;
      }
      EXPECT_EQ(y(3, 4), 0);
    }
  }
}

TEST(RoundToCodes, HasNoMoreThanItsNumberOfValues) {
  const Matrix<float> y = rounded(drawn(100, 40, 6), 3, RoundingRange::matrix);
  std::vector<float> values(y.span().begin(), y.span().end());
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  EXPECT_EQ(values.size(), 8u);
}

TEST(RoundToCodes, HasRangesOfItsOwnForRowsAndColumns) {
  Matrix<float> x(2, 2);
  x(0, 0) = 1;
  x(0, 1) = 100;
  x(1, 0) = 3;
  x(1, 1) = 40;
  const Matrix<float> by_rows = rounded(x, 1, RoundingRange::rows);
  const Matrix<float> by_columns = rounded(x, 1, RoundingRange::columns);
  const float rows_expected[] = {0, 100, 0, 40};
  const float columns_expected[] = {0, 100, 3, 0};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(by_rows.data()[i], rows_expected[i]);
    EXPECT_EQ(by_columns.data()[i], columns_expected[i]);
  }
}

TEST(RoundToCodes, SaysHowFarItsRangesReach) {
  Matrix<float> x(2, 2);
  x(0, 0) = 1;
  x(0, 1) = -100;
  x(1, 0) = 3;
  x(1, 1) = 40;
  std::vector<float> found;
  rounded(x, 4, RoundingRange::matrix, {}, {}, &found);
  EXPECT_EQ(found, (std::vector<float>{40, 100}));
  rounded(x, 4, RoundingRange::rows, {}, {}, &found);
  EXPECT_EQ(found, (std::vector<float>{1, 100, 40, 0}));
  rounded(x, 4, RoundingRange::columns, {}, {}, &found);
  EXPECT_EQ(found, (std::vector<float>{3, 0, 40, 100}));
  rounded(x, 4, RoundingRange::columns, {}, {10, 0.5f}, &found);
  EXPECT_EQ(found, (std::vector<float>{10, 0, 20, 1000}));
}

TEST(RoundToCodes, LeavesOutliersOfColumnsOutOfFewCodes) {
  constexpr std::int64_t rows = 3000;
  Matrix<float> x(rows, 3, 0.0f);
  for (std::int64_t i = 0; i < rows; ++i) x(i, 0) = i % 2 == 0 ? 1.0f : -1.0f;
  x(1, 0) = 1000;
  x(17, 1) = 5;
  std::vector<float> found;
  rounded(x, 4, RoundingRange::columns, {}, {}, &found);
  // 1 + 4 / 2 times the root mean square of 1,024 rows, the second of all among them.
  const float limit = 3 * std::sqrt((1e6f + 1023) / 1024);
  EXPECT_NEAR(found[0], limit, 1e-3f * limit);
  // Numbers of 0 do not count, and nothing keeps a range from its only number.
  EXPECT_EQ((std::vector<float>(found.begin() + 1, found.end())),
            (std::vector<float>{1, 5, 0, 0, 0}));
  const Matrix<float> y = rounded(x, 4, RoundingRange::columns);
  EXPECT_NEAR(y(1, 0), limit, limit / 15);
  for (const RoundingRange range : {RoundingRange::columns, RoundingRange::matrix}) {
    rounded(x, range == RoundingRange::columns ? 8 : 4, range, {}, {}, &found);
    EXPECT_EQ(found[0], 1000);
  }
}

TEST(RoundToCodes, LeavesOutliersInRowsThatAreNotLookedAtOut) {
  constexpr std::int64_t rows = 3000;
  Matrix<float> x(rows, 4);
  for (std::int64_t i = 0; i < x.size(); ++i) x.data()[i] = i / 4 % 2 == 0 ? 1.0f : -1.0f;
  // Of the rows 0 and 1 one is looked at.
  x(0, 0) = x(1, 1) = 1e5f;
  x(0, 2) = x(1, 3) = 1e9f;
  std::vector<float> found;
  rounded(x, 4, RoundingRange::columns, {}, {}, &found);
  EXPECT_NEAR(std::min(found[0], found[2]), 3, 3e-3f);
  EXPECT_NEAR(std::max(found[0], found[2]), 3e5f / 32, 10);
  // The ones are less than the smallest part that is counted.
  EXPECT_LE(std::min(found[4], found[6]), 3e9f / (1 << 26));
  EXPECT_NEAR(std::max(found[4], found[6]), 3e9f / 32, 1e5f);
}

TEST(RoundToCodes, LooksAtAllRowsOfAPeriod) {
  for (const std::int64_t period : {2, 3, 4, 8}) {
    for (const std::int64_t rows : {2048, 4096, 8192, 10000, 100000}) {
      // Large numbers in one row of each period: they stay where they are.
      Matrix<float> x(rows, period, 0.01f);
      for (std::int64_t i = 0; i < rows; ++i) x(i, i % period) = 1;
      std::vector<float> found;
      rounded(x, 4, RoundingRange::columns, {}, {}, &found);
      for (std::int64_t j = 0; j < period; ++j) {
        EXPECT_GT(found[static_cast<std::size_t>(j * 2)], 0.9f)
            << period << ' ' << rows << ' ' << j;
      }
    }
  }
}

TEST(RoundToCodes, RoundsRowsAsTheyAreScaled) {
  const Matrix<float> x = drawn(40, 9, 11);
  std::vector<float> scale(40);
  Matrix<float> scaled(40, 9);
  for (std::int64_t i = 0; i < 40; ++i) {
    scale[static_cast<std::size_t>(i)] = i == 7 ? 0.0f : 0.1f * static_cast<float>(i + 1);
    for (std::int64_t j = 0; j < 9; ++j) {
      scaled(i, j) = x(i, j) * scale[static_cast<std::size_t>(i)];
    }
  }
  for (const RoundingRange range :
       {RoundingRange::matrix, RoundingRange::rows, RoundingRange::columns}) {
    const Matrix<float> y = rounded(x, 4, range, {}, scale);
    const Matrix<float> expected = rounded(scaled, 4, range);
    for (std::int64_t i = 0; i < 40; ++i) {
      const float factor = scale[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j < 9; ++j) {
        EXPECT_EQ(y(i, j), factor == 0 ? x(i, j) : expected(i, j) / factor) << i << ' ' << j;
      }
    }
  }
}

TEST(RoundToCodes, LeavesWhatHasNoRange) {
  const Matrix<float> zeros(4, 5, 0.0f);
  const Matrix<float> same = rounded(zeros, 4, RoundingRange::matrix);
  for (const float value : same.span()) EXPECT_EQ(value, 0);
  EXPECT_EQ(rounded(Matrix<float>(0, 5), 4, RoundingRange::rows).size(), 0);
  // A single number and 0 are two codes.
  EXPECT_EQ(rounded(Matrix<float>(2, 2, 3.0f), 1, RoundingRange::matrix)(1, 1), 3.0f);
}

TEST(RoundToCodes, IsItsOwnRoundingAndTheSameForAnyThreads) {
  const Matrix<float> x = drawn(1000, 33, 7);
  set_num_threads(1);
  const Matrix<float> once = rounded(x, 5, RoundingRange::matrix);
  set_num_threads(3);
  const Matrix<float> again = rounded(x, 5, RoundingRange::matrix);
  set_num_threads(0);
  EXPECT_TRUE(std::equal(once.span().begin(), once.span().end(), again.span().begin()));
}

TEST(RoundToCodes, OnDeviceGivesTheSameNumbers) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const Device gpu{DeviceKind::cuda, 0};
  for (const RoundingRange range :
       {RoundingRange::matrix, RoundingRange::rows, RoundingRange::columns}) {
    for (const int bits : {1, 2, 4, 8, 16}) {
      Matrix<float> x = drawn(2321, 35, 8);
      x(1, 0) = 90;
      x(0, 34) = -70;
      x(0, 2) = 1e6f;
      x(1, 3) = 1e9f;
      std::vector<float> scale(2321);
      for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = static_cast<float>(i % 7);
      for (const auto& row_scale : {std::vector<float>(), scale}) {
        std::vector<float> reach_here, reach_there;
        const Matrix<float> here = rounded(x, bits, range, {}, row_scale, &reach_here);
        const Matrix<float> there = rounded(x, bits, range, gpu, row_scale, &reach_there);
        EXPECT_TRUE(std::equal(here.span().begin(), here.span().end(), there.span().begin()))
            << bits;
        EXPECT_EQ(reach_here, reach_there);
      }
    }
  }
}

TEST(RoundWithin, ItsOwnRangesRoundsTheSame) {
  const Matrix<float> x = drawn(65, 19, 12);
  std::vector<float> scale(65);
  for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = static_cast<float>(i % 5);
  for (const RoundingRange range :
       {RoundingRange::matrix, RoundingRange::rows, RoundingRange::columns}) {
    for (const auto& row_scale : {std::vector<float>(), scale}) {
      std::vector<float> found;
      const Matrix<float> once = rounded(x, 3, range, {}, row_scale, &found);
      std::vector<float> kept;
      const Matrix<float> again = rounded(x, 3, range, {}, row_scale, &kept, &found);
      EXPECT_TRUE(std::equal(once.span().begin(), once.span().end(), again.span().begin()));
      EXPECT_EQ(kept, found);
    }
  }
}

TEST(RoundWithin, NumbersOutsideBecomeTheEnds) {
  Matrix<float> x(1, 4);
  x(0, 0) = -5;
  x(0, 1) = 0.4f;
  x(0, 2) = 1.6f;
  x(0, 3) = 50;
  const std::vector<float> given = {2, 1};  // steps of 1 from -1 to 2
  const Matrix<float> y = rounded(x, 2, RoundingRange::matrix, {}, {}, nullptr, &given);
  EXPECT_EQ(y(0, 0), -1);
  EXPECT_EQ(y(0, 1), 0);
  EXPECT_EQ(y(0, 2), 2);
  EXPECT_EQ(y(0, 3), 2);
}

TEST(RoundWithin, OnDeviceGivesTheSameNumbers) {
  if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  const Matrix<float> x = drawn(77, 35, 13);
  for (const RoundingRange range :
       {RoundingRange::matrix, RoundingRange::rows, RoundingRange::columns}) {
    std::vector<float> found;
    rounded(drawn(77, 35, 14), 4, range, {}, {}, &found);
    for (float& reach : found) reach *= 0.5f;
    const Matrix<float> here = rounded(x, 4, range, {}, {}, nullptr, &found);
    const Matrix<float> there = rounded(x, 4, range, {DeviceKind::cuda, 0}, {}, nullptr, &found);
    EXPECT_TRUE(std::equal(here.span().begin(), here.span().end(), there.span().begin()));
  }
}

TEST(RoundToCodes, SaysWhatIsWrong) {
  Matrix<float> x = drawn(4, 3, 9), y(4, 3), scratch(1, 2);
  const auto invalid = ErrorCode::invalid_argument;
  testing::expect_error(invalid, {"17 bits"},
                        [&] { round_to_codes(x, 17, RoundingRange::matrix, scratch, y); });
  testing::expect_error(invalid, {"ranges"},
                        [&] { round_to_codes(x, 4, RoundingRange::rows, scratch, y); });
  Matrix<float> scale(3, 1);
  testing::expect_error(invalid, {"row_scale", "4 x 1"}, [&] {
    round_to_codes(x, 4, RoundingRange::matrix, scratch, y, {}, {}, scale);
  });
}

}  // namespace
}  // namespace tessera::ops
