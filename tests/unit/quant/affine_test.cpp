// SPDX-License-Identifier: Apache-2.0
#include "tessera/quant/affine.hpp"

#include <cmath>
#include <limits>
#include <sstream>

#include <gtest/gtest.h>

#include "support/expect_error.hpp"
#include "support/odd_graphs.hpp"

namespace tessera::quant {
namespace {

using testing::expect_error;

Matrix<float> drawn(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Matrix<float> x(rows, cols);
  std::uint64_t state = seed * 2654435761u + 1;
  for (float& value : x.span()) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<float>(static_cast<double>(state >> 40) / 1048576.0 - 5.0);
  }
  return x;
}

TEST(Affine, IsNeverFurtherOffThanHalfAStep) {
  const Matrix<float> x = drawn(67, 13, 1);
  for (int bits = 1; bits <= max_bits; ++bits) {
    for (const Rounding rounding : {Rounding::nearest, Rounding::floor}) {
      for (const Granularity granularity :
           {Granularity::tensor, Granularity::columns, Granularity::classes}) {
        SCOPED_TRACE(std::to_string(bits) + to_string(rounding) + to_string(granularity));
        QuantOptions options{.bits = bits, .rounding = rounding, .granularity = granularity};
        for (int i = 0; i < 67; ++i) options.classes.of_row.push_back(i % 3);
        options.classes.count = 3;
        const Affine affine = calibrate(x, options);
        affine.validate();
        const Matrix<std::uint16_t> codes = quantise(x, affine);
        const Matrix<float> back = dequantise({codes.data(), 67, 13}, affine);
        for (std::int64_t i = 0; i < x.rows(); ++i) {
          for (std::int64_t j = 0; j < x.cols(); ++j) {
            const float step = affine.scale[affine.range_of(i, j)];
            ASSERT_LE(codes(i, j), affine.max_code());
            ASSERT_LE(std::abs(back(i, j) - x(i, j)), step * 0.5f + 4e-6f) << i << ' ' << j;
          }
        }
      }
    }
  }
}

TEST(Affine, FloorsAsThePaperDoes) {
  Matrix<float> x(1, 5);
  const float values[] = {0, 0.24f, 0.25f, 0.99f, 1};
  std::copy(std::begin(values), std::end(values), x.data());
  const Affine affine = calibrate(x, {.bits = 2, .rounding = Rounding::floor});
  EXPECT_FLOAT_EQ(affine.scale[0], 0.25f);
  const Matrix<std::uint16_t> codes = quantise(x, affine);
  const std::uint16_t expected[] = {0, 0, 1, 3, 3};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(codes(0, i), expected[i]) << i;
}

TEST(Affine, LeavesOutliersOutByPercentile) {
  Matrix<float> x(1000, 1);
  for (int i = 0; i < 1000; ++i) x(i, 0) = static_cast<float>(i);
  x(0, 0) = -1e6f;
  x(999, 0) = 1e6f;
  const Affine affine =
      calibrate(x, {.bits = 8, .calibration = Calibration::percentile, .share = 0.998});
  EXPECT_FLOAT_EQ(affine.lower[0], 1);
  EXPECT_FLOAT_EQ(affine.scale[0], 997.0f / 255);
  const Matrix<std::uint16_t> codes = quantise(x, affine);
  EXPECT_EQ(codes(0, 0), 0);
  EXPECT_EQ(codes(999, 0), 255);
}

TEST(Affine, TakesBounds) {
  const Affine affine =
      calibrate(Matrix<float>(0, 0),
                {.bits = 4, .calibration = Calibration::bounds, .lower = -1, .upper = 2});
  EXPECT_FLOAT_EQ(affine.lower[0], -1);
  EXPECT_FLOAT_EQ(affine.scale[0], 0.2f);
  std::ostringstream text;
  text << affine;
  EXPECT_EQ(text.str(), "4 bits, nearest, from -1 in steps of 0.2");
}

TEST(Affine, SaysWhatCannotBe) {
  const Matrix<float> x = drawn(4, 2, 2);
  const auto invalid = ErrorCode::invalid_argument;
  expect_error(invalid, {"17 bits", "1 to 16"}, [&] { calibrate(x, {.bits = 17}); });
  expect_error(invalid, {"0 bits"}, [&] { calibrate(x, {.bits = 0}); });
  expect_error(invalid, {"no width", "the matrix"},
               [&] { calibrate(Matrix<float>(3, 3, 1.0f), {.bits = 4}); });
  for (const double bound : {3e38, 1e-37}) {
    expect_error(invalid, {"in 255 steps, which single precision does not hold"}, [&] {
      calibrate(x, {.calibration = Calibration::bounds, .lower = -bound, .upper = bound});
    });
  }
  Matrix<float> flat = drawn(4, 2, 3);
  for (int i = 0; i < 4; ++i) flat(i, 1) = 7;
  expect_error(invalid, {"from 7 to 7", "column 1"},
               [&] { calibrate(flat, {.bits = 4, .granularity = Granularity::columns}); });
  expect_error(invalid, {"no width"},
               [&] { calibrate(x, {.calibration = Calibration::bounds, .lower = 2, .upper = 1}); });
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Matrix<float> broken = drawn(4, 2, 4);
    broken(2, 1) = bad;
    expect_error(invalid, {"has no range", "row 2, column 1"}, [&] { calibrate(broken, {}); });
  }
  Matrix<float> broken = drawn(4, 2, 5);
  const Affine affine = calibrate(broken, {});
  broken(3, 0) = std::numeric_limits<float>::quiet_NaN();
  expect_error(invalid, {"no code", "row 3, column 0"}, [&] { quantise(broken, affine); });
  expect_error(invalid, {"no numbers"}, [&] { calibrate(Matrix<float>(0, 3), {}); });
  expect_error(invalid, {"classes of 0 rows"},
               [&] { calibrate(x, {.granularity = Granularity::classes}); });
  const Affine columns = calibrate(x, {.granularity = Granularity::columns});
  expect_error(invalid, {"3 columns, but ranges of 2"},
               [&] { quantise(Matrix<float>(1, 3, 0.0f), columns); });
}

TEST(Affine, ClassesRowsByDegree) {
  const Graph graph = testing::hub_graph(40, 500, 3);
  const RowClasses classes = degree_classes(graph, 4);
  ASSERT_EQ(classes.of_row.size(), static_cast<std::size_t>(graph.num_rows()));
  EXPECT_GT(classes.count, 1);
  EXPECT_LE(classes.count, 4);
  for (VertexId a = 0; a < graph.num_rows(); ++a) {
    for (VertexId b = 0; b < graph.num_rows(); ++b) {
      if (graph.degree(a) < graph.degree(b)) {
        EXPECT_LE(classes.of_row[static_cast<std::size_t>(a)],
                  classes.of_row[static_cast<std::size_t>(b)]);
      }
    }
  }
  expect_error(ErrorCode::invalid_argument, {"at most 0"}, [&] { degree_classes(graph, 0); });
}

}  // namespace
}  // namespace tessera::quant
