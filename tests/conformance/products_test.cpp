// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "support/gemm_check.hpp"

/// Products on a GPU, most in fp32: each kernel at the edges of its tiles, and numbers that bf16
/// planes cannot hold.
namespace tessera::ops {
namespace {

using test::DeviceMatrix;

constexpr Device gpu{DeviceKind::cuda, 0};
constexpr Transpose no = Transpose::no, yes = Transpose::yes;

class ProductsOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_gpus() == 0) GTEST_SKIP() << "no GPU here; tools/gpu.sh test runs it";
  }
};

/// More columns than a block takes.
TEST_F(ProductsOnGpu, many_rows_with_more_columns) {
  for (const test::ProductShape& shape :
       {test::ProductShape{32801, 70, 66}, {32768, 128, 8}, {8200, 128, 96}, {33000, 65, 17}}) {
    test::check_gemm<float>(shape, no, yes, {{0, 0}}, gpu);
    test::check_gemm<float>(shape, no, no, {{0.5, 3}}, gpu);
  }
}

TEST_F(ProductsOnGpu, many_rows_with_a_small_matrix) {
  for (const std::int64_t rows : {32768, 32801}) {
    for (const std::int64_t cols : {1, 31, 33, 64}) {
      for (const std::int64_t inner : {1, 8, 17, 64, 66, 130}) {
        test::check_gemm<float>({rows, cols, inner}, no, yes, {{0, 0}}, gpu);
        test::check_gemm<float>({rows, cols, inner}, no, no, {{0.5, 3}}, gpu);
      }
    }
  }
}

TEST_F(ProductsOnGpu, gradients_of_weights_over_many_rows) {
  for (const std::int64_t inner : {32768, 33333}) {
    for (const test::ProductShape& shape : {test::ProductShape{1, 1, inner},
                                            {7, 64, inner},
                                            {64, 7, inner},
                                            {33, 65, inner},
                                            {74, 64, inner},
                                            {64, 81, inner},
                                            {96, 64, inner},
                                            {64, 96, inner},
                                            {65, 65, inner},
                                            {96, 70, inner},
                                            {96, 96, inner}}) {
      test::check_gemm<float>(shape, yes, no, {{0, 0}, {1, 3}}, gpu);
      test::check_gemm<Bfloat16>(shape, yes, no, {{0, 0}, {1, 8}}, gpu);
    }
  }
}

/// One to four columns are summed over the rows, not multiplied in tiles.
TEST_F(ProductsOnGpu, few_columns_by_many_rows) {
  constexpr std::int64_t inner = 33333;
  for (const test::ProductShape& shape : {test::ProductShape{1, 64, inner},
                                          {2, 64, inner},
                                          {3, 9, inner},
                                          {3, 64, inner},
                                          {4, 41, inner},
                                          {4, 64, inner}}) {
    test::check_gemm<float>(shape, yes, no, {{0, 0}, {0, 3}}, gpu);
    test::check_gemm<Bfloat16>(shape, yes, no, {{0, 0}, {0, 3}}, gpu);
  }
}

/// One to four columns of many short rows are dot products.
TEST_F(ProductsOnGpu, many_short_rows_with_few_columns) {
  for (const test::ProductShape& shape : {test::ProductShape{33333, 1, 64},
                                          {33333, 2, 64},
                                          {40001, 3, 61},
                                          {33333, 4, 64},
                                          {32769, 4, 7},
                                          {140002, 2, 33}}) {
    for (const Transpose turn_b : {no, yes}) {
      test::check_gemm<float>(shape, no, turn_b, {{0, 0}, {0, 3}}, gpu);
      test::check_gemm<Bfloat16>(shape, no, turn_b, {{0, 0}, {0, 3}}, gpu);
    }
  }
}

/// Those that cuBLAS computes, within the bound of tf32; the others stay as exact as fp32.
TEST_F(ProductsOnGpu, tf32_where_it_is_allowed) {
  for (const test::ProductShape& shape :
       {test::ProductShape{4100, 257, 130}, {130, 129, 9000}, {40000, 97, 33}}) {
    for (const Transpose turn_a : {no, yes}) {
      for (const Transpose turn_b : {no, yes}) {
        test::check_gemm<float>(shape, turn_a, turn_b, {{0, 0}}, gpu, Precision::tf32);
      }
    }
    test::check_gemm<float>(shape, no, yes, {{1, 3}}, gpu, Precision::tf32);
  }
}

TEST_F(ProductsOnGpu, small_products_at_the_edges_of_tiles) {
  for (const std::int64_t rows : {1, 127, 129, 700}) {
    for (const std::int64_t cols : {8, 15, 17, 33, 65}) {
      for (const std::int64_t inner : {15, 31, 33, 700}) {
        test::check_gemm<float>({rows, cols, inner}, no, yes, {{0, 3}}, gpu);
        test::check_gemm<float>({rows, cols, inner}, yes, no, {{0, 0}}, gpu);
      }
    }
  }
}

/// What plain sums give: infinity, a not-a-number, and the largest numbers.
void expect_plain_results(std::int64_t rows, std::int64_t inner, Transpose turn_a) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float largest = std::numeric_limits<float>::max();
  const bool turned = turn_a == yes;
  Matrix<float> a(turned ? inner : rows, turned ? rows : inner, 0.25f);
  const auto at = [&](std::int64_t row, std::int64_t k) -> float& {
    return turned ? a(k, row) : a(row, k);
  };
  at(0, 3) = infinity;
  at(1, 2) = std::numeric_limits<float>::quiet_NaN();
  for (std::int64_t k = 0; k < inner; ++k) at(2, k) = 0;
  at(2, 0) = largest;
  const Matrix<float> b(inner, 5, 0.5f);
  DeviceMatrix<float> a_there(a, gpu), b_there(b, gpu), c(rows, 5, gpu);
  gemm(turn_a, no, 1, a_there, b_there, 0, c, gpu, {}, test::workspace_on(gpu));
  const Matrix<float> result = c.values();
  for (std::int64_t col = 0; col < 5; ++col) {
    EXPECT_EQ(result(0, col), infinity);
    EXPECT_TRUE(std::isnan(result(1, col)));
    EXPECT_EQ(result(2, col), largest / 2);
    EXPECT_EQ(result(3, col), static_cast<float>(inner) / 8);
  }
}

TEST_F(ProductsOnGpu, what_is_not_finite_stays_in_its_row) {
  expect_plain_results(40, 9, no);
  expect_plain_results(40000, 9, no);
  expect_plain_results(4, 40000, yes);
}

}  // namespace
}  // namespace tessera::ops
