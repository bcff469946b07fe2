// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/matrix.hpp"

#include <gtest/gtest.h>

#include "tessera/core/error.hpp"

namespace tessera {
namespace {

TEST(Matrix, IsRowMajor) {
  Matrix<int> matrix(3, 5, 0);
  matrix(1, 2) = 7;
  EXPECT_EQ(matrix.size(), 15);
  EXPECT_EQ(matrix.data()[7], 7);
  EXPECT_EQ(matrix.row(1)[2], 7);
  EXPECT_EQ(matrix.span().size(), 15u);
}

TEST(Matrix, MayHaveNoRowsOrColumns) {
  EXPECT_EQ((Matrix<float>(0, 5).size()), 0);
  EXPECT_EQ((Matrix<float>(5, 0).rows()), 5);
  EXPECT_EQ(Matrix<float>().cols(), 0);
}

TEST(Matrix, RefusesNegativeAndHugeShapes) {
  EXPECT_THROW(Matrix<float>(-1, 2), Error);
  EXPECT_THROW(Matrix<float>(std::int64_t{1} << 40, std::int64_t{1} << 40), Error);
}

TEST(MatrixView, StepsOverItsStride) {
  Matrix<int> matrix(4, 6, 0);
  const MatrixView<int> inner(matrix.row(1) + 2, 2, 3, matrix.cols());
  inner(1, 2) = 9;
  EXPECT_EQ(matrix(2, 4), 9);
  const MatrixView<const int> read_only = inner;
  EXPECT_EQ(read_only.row(1)[2], 9);
  EXPECT_EQ(read_only.stride, 6);
  const MatrixView<const int> whole = matrix;
  EXPECT_EQ(whole.rows, 4);
  EXPECT_EQ(whole(2, 4), 9);
}

}  // namespace
}  // namespace tessera
