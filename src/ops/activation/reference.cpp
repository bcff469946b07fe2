// SPDX-License-Identifier: Apache-2.0
#include "ops/activation/reference.hpp"

#include <cmath>

#include "tessera/ops/dropout.hpp"

#include "core/exact_sum.hpp"

namespace tessera::ops::reference {
namespace {

double activate(const ActivationOptions& options, double z) {
  switch (options.activation) {
    case Activation::none: return z;
    case Activation::relu: return z <= 0 ? 0 : z;
    case Activation::leaky_relu: return z > 0 ? z : options.slope * z;
    case Activation::elu: return z > 0 ? z : options.alpha * std::expm1(z);
  }
  return z;
}

double derivative(const ActivationOptions& options, double z) {
  switch (options.activation) {
    case Activation::none: return 1;
    case Activation::relu: return z <= 0 ? 0 : 1;
    case Activation::leaky_relu: return z > 0 ? 1 : options.slope;
    case Activation::elu: return z > 0 ? 1 : options.alpha * std::exp(z);
  }
  return 1;
}

double norm(MatrixView<const double> x, std::int64_t row) {
  ExactSum squares;
  for (std::int64_t j = 0; j < x.cols; ++j) squares += x(row, j) * x(row, j);
  return std::sqrt(squares.value());
}

}  // namespace

void bias_activation_dropout(MatrixView<const double> x, MatrixView<const double> bias,
                             const ActivationOptions& options, MatrixView<double> y) {
  const Dropout dropout{options.dropout, options.random};
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t j = 0; j < x.cols; ++j) {
      const double z = x(i, j) + (bias.data != nullptr ? bias(0, j) : 0);
      const auto element = static_cast<std::uint64_t>(i * x.cols + j);
      y(i, j) = activate(options, z) * dropout.factor(element);
    }
  }
}

void bias_activation_dropout_backward(MatrixView<const double> x, MatrixView<const double> bias,
                                      const ActivationOptions& options,
                                      MatrixView<const double> grad_y, MatrixView<double> grad_x,
                                      MatrixView<double> grad_bias) {
  const Dropout dropout{options.dropout, options.random};
  for (std::int64_t j = 0; j < x.cols; ++j) {
    ExactSum sum;
    for (std::int64_t i = 0; i < x.rows; ++i) {
      const double z = x(i, j) + (bias.data != nullptr ? bias(0, j) : 0);
      const auto element = static_cast<std::uint64_t>(i * x.cols + j);
      grad_x(i, j) = grad_y(i, j) * dropout.factor(element) * derivative(options, z);
      sum += grad_x(i, j);
    }
    grad_bias(0, j) = sum.value();
  }
}

void row_normalise(MatrixView<const double> x, double epsilon, MatrixView<double> y) {
  for (std::int64_t i = 0; i < x.rows; ++i) {
    const double length = norm(x, i);
    for (std::int64_t j = 0; j < x.cols; ++j) {
      y(i, j) = x(i, j) / (length < epsilon ? epsilon : length);
    }
  }
}

void row_normalise_backward(MatrixView<const double> x, MatrixView<const double> grad_y,
                            double epsilon, MatrixView<double> grad_x) {
  for (std::int64_t i = 0; i < x.rows; ++i) {
    const double length = norm(x, i);
    ExactSum exact;
    for (std::int64_t j = 0; j < x.cols; ++j) exact += grad_y(i, j) * x(i, j) / length;
    const double along = exact.value();
    for (std::int64_t j = 0; j < x.cols; ++j) {
      // Where epsilon stands in for the length, nothing depends on the length.
      grad_x(i, j) = length < epsilon ? grad_y(i, j) / epsilon
                                      : (grad_y(i, j) - along * x(i, j) / length) / length;
    }
  }
}

}  // namespace tessera::ops::reference
