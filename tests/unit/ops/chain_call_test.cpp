// SPDX-License-Identifier: Apache-2.0
#include "ops/dense/call_chain.hpp"

#include <gtest/gtest.h>

#include <array>

#include "support/counted_new.hpp"
#include "tessera/core/matrix.hpp"

namespace tessera::ops {
namespace {

class ChainCalls : public ::testing::Test {
 protected:
  static constexpr std::int64_t rows = 20, width = 8;

  Matrix<float> x_{rows, width}, y_{rows, width}, grad_y_{rows, width}, grad_x_{rows, width};
  Matrix<float> weight_{width, width}, columns_{8, width};

  Operand column_numbers(std::int64_t i) {
    return {columns_.row(i), ElementType::fp32, Device{}, 1, width};
  }
  /// Of all calls the one with the most matrices.
  BatchNormGradCall norm_gradient() {
    BatchNormGradCall call{x_,      column_numbers(0), column_numbers(1), column_numbers(2),
                           grad_y_, grad_x_,           column_numbers(3), column_numbers(4)};
    call.beta = column_numbers(5);
    call.grad_shift = column_numbers(6);
    return call;
  }
};

TEST_F(ChainCalls, follow_those_that_write_more_than_the_same_rows_of_what_they_read) {
  const std::array<ChainCall, 1> norm{norm_gradient()};
  const LinearGradCall reads_rows{x_, weight_, grad_x_, {}, {}, y_};
  EXPECT_FALSE(must_follow(reads_rows, norm));
  const LinearCall reads_all{x_, grad_x_, {}, y_};
  EXPECT_TRUE(must_follow(reads_all, norm));
  const LinearCall reads_sums{x_, weight_, column_numbers(6), y_};
  EXPECT_TRUE(must_follow(reads_sums, norm));
  const LinearCall reads_others{x_, weight_, column_numbers(7), y_};
  EXPECT_FALSE(must_follow(reads_others, norm));
}

/// All blocks of a chain know the mean that a batch norm finds; nothing else may read a part of it.
TEST_F(ChainCalls, may_read_the_mean_of_a_batch_norm_before_them) {
  BatchNormCall norm{};
  norm.x = x_;
  norm.y = y_;
  norm.saved_mean = column_numbers(1);
  norm.saved_inverse_deviation = column_numbers(2);
  const std::array<ChainCall, 1> before{norm};
  BatchNormGradCall gradient = norm_gradient();
  EXPECT_FALSE(must_follow(gradient, before));
  gradient.saved_mean.cols -= 1;
  EXPECT_TRUE(must_follow(gradient, before));
  EXPECT_TRUE(must_follow(LinearCall{x_, weight_, column_numbers(1), grad_x_}, before));
  EXPECT_TRUE(must_follow(norm, before));
}

/// Predictions ask it for each call of each run.
TEST_F(ChainCalls, are_compared_without_taking_memory) {
  const std::array<ChainCall, 2> before{norm_gradient(), LinearCall{x_, weight_, {}, y_}};
  const ChainCall call = LinearGradCall{y_, weight_, grad_x_, {}, {}, {}};
  const std::int64_t news = test::num_news();
  EXPECT_FALSE(must_follow(call, before));
  EXPECT_EQ(test::num_news(), news);
}

}  // namespace
}  // namespace tessera::ops
