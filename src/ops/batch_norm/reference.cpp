// SPDX-License-Identifier: Apache-2.0
#include "ops/batch_norm/reference.hpp"

#include <cmath>

#include "core/exact_sum.hpp"

namespace tessera::ops::reference {

void batch_norm(MatrixView<const double> x, MatrixView<const double> gamma,
                MatrixView<const double> beta, const BatchNormOptions& options,
                MatrixView<double> running_mean, MatrixView<double> running_variance,
                MatrixView<double> y, MatrixView<double> saved_mean,
                MatrixView<double> saved_inverse_deviation) {
  const auto count = static_cast<double>(x.rows);
  for (std::int64_t j = 0; j < x.cols; ++j) {
    double mean = running_mean(0, j);
    double variance = running_variance(0, j);
    if (options.training) {
      ExactSum sum, exact_squares;
      for (std::int64_t i = 0; i < x.rows; ++i) sum += x(i, j);
      mean = x.rows > 0 ? sum.value() / count : 0;
      for (std::int64_t i = 0; i < x.rows; ++i) {
        exact_squares += (x(i, j) - mean) * (x(i, j) - mean);
      }
      const double squares = exact_squares.value();
      variance = x.rows > 0 ? squares / count : 0;
      if (x.rows > 0) running_mean(0, j) += options.momentum * (mean - running_mean(0, j));
      if (x.rows > 1) {
        const double unbiased = squares / (count - 1);
        running_variance(0, j) += options.momentum * (unbiased - running_variance(0, j));
      }
      saved_mean(0, j) = mean;
      saved_inverse_deviation(0, j) = 1 / std::sqrt(variance + options.epsilon);
    }
    const double inverse_deviation = 1 / std::sqrt(variance + options.epsilon);
    for (std::int64_t i = 0; i < x.rows; ++i) {
      y(i, j) = gamma(0, j) * (x(i, j) - mean) * inverse_deviation + beta(0, j);
    }
  }
}

void batch_norm_backward(MatrixView<const double> x, MatrixView<const double> gamma,
                         MatrixView<const double> saved_mean,
                         MatrixView<const double> saved_inverse_deviation,
                         MatrixView<const double> grad_y, MatrixView<double> grad_x,
                         MatrixView<double> grad_gamma, MatrixView<double> grad_beta) {
  const auto count = static_cast<double>(x.rows);
  for (std::int64_t j = 0; j < x.cols; ++j) {
    const double inverse_deviation = saved_inverse_deviation(0, j);
    const auto normalised = [&](std::int64_t i) {
      return (x(i, j) - saved_mean(0, j)) * inverse_deviation;
    };
    ExactSum exact_sum, exact_weighted;
    for (std::int64_t i = 0; i < x.rows; ++i) {
      exact_sum += grad_y(i, j);
      exact_weighted += grad_y(i, j) * normalised(i);
    }
    const double sum = exact_sum.value();
    const double weighted_sum = exact_weighted.value();
    grad_beta(0, j) = sum;
    grad_gamma(0, j) = weighted_sum;
    for (std::int64_t i = 0; i < x.rows; ++i) {
      grad_x(i, j) = gamma(0, j) * inverse_deviation *
                     (grad_y(i, j) - sum / count - normalised(i) * weighted_sum / count);
    }
  }
}

}  // namespace tessera::ops::reference
