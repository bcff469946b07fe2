// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/elementwise.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "support/matrices.hpp"

namespace tessera::ops {
namespace {

using test::normal_matrix;
using test::Padded;

constexpr std::int64_t sizes[] = {0, 1, 15, 16, 17, 33};

TEST(Elementwise, fill_writes_every_element_and_no_other) {
  for (const std::int64_t rows : sizes) {
    for (const std::int64_t cols : sizes) {
      Padded<float> y(rows, cols);
      fill(y.view(), 2.5);
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < cols; ++j) ASSERT_EQ(y.view()(i, j), 2.5f);
      }
      EXPECT_TRUE(y.margins_intact());
    }
  }
}

TEST(Elementwise, copy_converts) {
  const Matrix<double> x = normal_matrix<double>(17, 5, 1);
  Matrix<float> narrow(17, 5);
  Matrix<Bfloat16> half(17, 5);
  Matrix<double> back(17, 5);
  copy(x, narrow);
  copy(narrow, half);
  copy(half, back);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(narrow.data()[i], static_cast<float>(x.data()[i]));
    EXPECT_EQ(back.data()[i], static_cast<double>(static_cast<float>(Bfloat16(narrow.data()[i]))));
  }
  Matrix<float> turned(5, 17);
  EXPECT_THROW(copy(x, turned), Error);
}

TEST(Elementwise, transpose_of_any_shape) {
  for (const std::int64_t rows : sizes) {
    for (const std::int64_t cols : {std::int64_t{1}, std::int64_t{16}, std::int64_t{257}}) {
      const Matrix<float> x = normal_matrix<float>(rows, cols, 3);
      Padded<float> y(cols, rows);
      transpose(x, y.view());
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < cols; ++j) ASSERT_EQ(y.view()(j, i), x(i, j));
      }
      EXPECT_TRUE(y.margins_intact());
    }
  }
}

TEST(Elementwise, add_scaled_ignores_what_was_there_when_beta_is_zero) {
  const Matrix<double> x = normal_matrix<double>(33, 7, 1);
  Matrix<double> y = normal_matrix<double>(33, 7, 2);
  const Matrix<double> before = test::copy_of(y);
  add_scaled(2, x, -3, y);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    EXPECT_DOUBLE_EQ(y.data()[i], 2 * x.data()[i] - 3 * before.data()[i]);
  }
  y(0, 0) = std::numeric_limits<double>::quiet_NaN();
  add_scaled(2, x, 0, y);
  EXPECT_EQ(y(0, 0), 2 * x(0, 0));
  add_scaled(0.5, y, 0, y);
  EXPECT_EQ(y(0, 0), x(0, 0));
}

TEST(Elementwise, dot_is_the_same_for_any_number_of_threads) {
  const Matrix<double> x = normal_matrix<double>(5000, 17, 1);
  const Matrix<double> y = normal_matrix<double>(5000, 17, 2);
  double expected = 0;
  for (std::int64_t i = 0; i < x.size(); ++i) expected += x.data()[i] * y.data()[i];
  Matrix<double> one(1, 1), three(1, 1);
  set_num_threads(1);
  dot(x, y, one);
  set_num_threads(3);
  dot(x, y, three);
  set_num_threads(0);
  EXPECT_NEAR(one(0, 0), expected, 1e-8);
  EXPECT_EQ(one(0, 0), three(0, 0));
}

TEST(Elementwise, wrong_operands_are_refused) {
  Matrix<float> x(3, 4);
  Matrix<float> y(4, 3);
  Matrix<double> wide(3, 4);
  EXPECT_THROW(add_scaled(1, x, 0, y), Error);
  EXPECT_THROW(add_scaled(1, x, 0, wide), Error);
  EXPECT_THROW(transpose(x, x), Error);
  Matrix<float> sum(1, 1);
  EXPECT_THROW(dot(x, y, sum), Error);
  EXPECT_THROW(dot(x, x, y), Error);
  EXPECT_THROW(add_scaled_by(x, 0, x, 0, y), Error);
}

}  // namespace
}  // namespace tessera::ops
