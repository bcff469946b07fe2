// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/activation/kernels.hpp"
#include "ops/check.hpp"
#include "ops/cpu_dense_ops.hpp"
#include "ops/row_ranges.hpp"

namespace tessera::ops {
namespace {

/// Element j of a row that may be absent.
double value_or(const ConstOperand& row, std::int64_t j, double otherwise) {
  if (row.absent()) return otherwise;
  return visit_floating(row.type, [&](auto element) {
    return static_cast<double>(row.as<decltype(element)>()(0, j));
  });
}

void set(const Operand& row, std::int64_t j, double value) {
  if (row.absent()) return;
  visit_floating(row.type, [&](auto element) {
    using T = decltype(element);
    row.as<T>()(0, j) = static_cast<T>(value);
  });
}

/// Mean and mean square distance from it, of each column.
struct Moments {
  Buffer<double> mean;
  Buffer<double> variance;
};

template <class T>
Moments batch_moments(MatrixView<const T> x) {
  const double count = std::max(1.0, static_cast<double>(x.rows));
  Moments moments;
  moments.mean = sum_over_rows(x.rows, x.cols, [&](auto begin, auto end, double* sums) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* const row = x.row(i);
      for (std::int64_t j = 0; j < x.cols; ++j) sums[j] += static_cast<double>(row[j]);
    }
  });
  for (double& mean : moments.mean) mean /= count;
  const double* const mean = moments.mean.data();
  moments.variance = sum_over_rows(x.rows, x.cols, [&](auto begin, auto end, double* sums) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* const row = x.row(i);
      for (std::int64_t j = 0; j < x.cols; ++j) {
        const double distance = static_cast<double>(row[j]) - mean[j];
        sums[j] += distance * distance;
      }
    }
  });
  for (double& variance : moments.variance) variance /= count;
  return moments;
}

/// The mean of x is that of shifted x, less the shift.
Moments running_moments(const BatchNormState& state, const ConstOperand& shift, std::int64_t cols) {
  Moments moments{Buffer<double>(cols), Buffer<double>(cols)};
  for (std::int64_t j = 0; j < cols; ++j) {
    moments.mean[j] = value_or(state.running_mean, j, 0) - value_or(shift, j, 0);
    moments.variance[j] = value_or(state.running_variance, j, 1);
  }
  return moments;
}

void update_running(const Moments& moments, const ConstOperand& shift, std::int64_t rows,
                    double momentum, const BatchNormState& state) {
  const auto count = static_cast<double>(rows);
  const auto move = [&](const Operand& running, std::int64_t j, double target) {
    const double value = value_or(running, j, 0);
    set(running, j, value + momentum * (target - value));
  };
  for (std::int64_t j = 0; j < moments.mean.size(); ++j) {
    if (rows > 0) move(state.running_mean, j, moments.mean[j] + value_or(shift, j, 0));
    if (rows > 1) move(state.running_variance, j, moments.variance[j] * count / (count - 1));
  }
}

/// y = (x - mean) * factor + beta, where factor is gamma / deviation. The distance is taken before
/// the product: folding the mean into beta would lose digits of columns far from 0.
template <class T>
void normalise_rows(MatrixView<const T> x, const Moments& moments, const ConstOperand& gamma,
                    const ConstOperand& beta, double epsilon, MatrixView<T> y) {
  Buffer<T> mean(x.cols), factor(x.cols), shift(x.cols);
  for (std::int64_t j = 0; j < x.cols; ++j) {
    mean[j] = static_cast<T>(moments.mean[j]);
    factor[j] = static_cast<T>(value_or(gamma, j, 1) / std::sqrt(moments.variance[j] + epsilon));
    // What the mean lost when it was rounded to T.
    const double lost = moments.mean[j] - static_cast<double>(mean[j]);
    shift[j] = static_cast<T>(value_or(beta, j, 0) - lost * static_cast<double>(factor[j]));
  }
  for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* const from = x.row(i);
      T* const to = y.row(i);
      for (std::int64_t j = 0; j < x.cols; ++j) to[j] = (from[j] - mean[j]) * factor[j] + shift[j];
    }
  });
}

/// The gradient of what was normalised, from that of what the activation made of it.
template <class T>
void differentiate_activation(const BatchNormGradCall& call) {
  ActivationFormula formula = call.formula;
  formula.dropout = formula.dropout.at_present();
  const MatrixView<const T> x = call.x.as<T>();
  const std::int64_t cols = x.cols;
  Buffer<T> factor(cols), shift(cols), no_bias(cols, T{0});
  for (std::int64_t j = 0; j < cols; ++j) {
    factor[j] =
        static_cast<T>(value_or(call.gamma, j, 1) * value_or(call.saved_inverse_deviation, j, 1));
    shift[j] = static_cast<T>(value_or(call.beta, j, 0));
  }
  const T* const mean = call.saved_mean.as<T>().data;
  constexpr std::int64_t at_once = 4096;  // elements
  for_row_ranges(x.rows, cols, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t height = std::max<std::int64_t>(1, at_once / cols);
    Buffer<T> normalised(height * cols);
    for (std::int64_t first = begin; first < end; first += height) {
      ActivationRows<T> rows;
      rows.rows = std::min(height, end - first);
      rows.cols = cols;
      rows.first_element = static_cast<std::uint64_t>(first * cols);
      for (std::int64_t i = 0; i < rows.rows; ++i) {
        const T* const from = x.row(first + i);
        T* const to = normalised.data() + i * cols;
        for (std::int64_t j = 0; j < cols; ++j) to[j] = (from[j] - mean[j]) * factor[j] + shift[j];
      }
      rows.x = normalised.data();
      rows.x_stride = cols;
      rows.bias = no_bias.data();
      rows.grad_y = call.grad_y.as<T>().row(first);
      rows.grad_y_stride = call.grad_y.stride;
      rows.output = call.grad_x.as<T>().row(first);
      rows.output_stride = call.grad_x.stride;
      if constexpr (std::is_same_v<T, float>) {
        activation().backward_fp32(formula, rows);
      } else {
        activation().backward_fp64(formula, rows);
      }
    }
  });
}

/// The sums of grad_y and of grad_y * normalised x, of each column: 2 * cols numbers.
template <class T>
Buffer<double> gradient_sums(MatrixView<const T> x, const T* mean, const T* inverse_deviation,
                             MatrixView<const T> grad_y) {
  return sum_over_rows(x.rows, 2 * x.cols, [&](auto begin, auto end, double* sums) {
    double* const weighted = sums + x.cols;
    for (std::int64_t i = begin; i < end; ++i) {
      const T* const value = x.row(i);
      const T* const gradient = grad_y.row(i);
      for (std::int64_t j = 0; j < x.cols; ++j) {
        sums[j] += static_cast<double>(gradient[j]);
        weighted[j] +=
            static_cast<double>(gradient[j] * ((value[j] - mean[j]) * inverse_deviation[j]));
      }
    }
  });
}

template <class T>
void write_grad_x(MatrixView<const T> x, const ConstOperand& gamma, const T* mean,
                  const T* inverse_deviation, const Buffer<double>& sums,
                  MatrixView<const T> grad_y, MatrixView<T> grad_x) {
  const double count = std::max(1.0, static_cast<double>(x.rows));
  Buffer<T> factor(x.cols), mean_gradient(x.cols), mean_weighted(x.cols);
  for (std::int64_t j = 0; j < x.cols; ++j) {
    factor[j] = static_cast<T>(value_or(gamma, j, 1) * static_cast<double>(inverse_deviation[j]));
    mean_gradient[j] = static_cast<T>(sums[j] / count);
    mean_weighted[j] = static_cast<T>(sums[x.cols + j] / count);
  }
  for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* const value = x.row(i);
      const T* const gradient = grad_y.row(i);
      T* const to = grad_x.row(i);
      for (std::int64_t j = 0; j < x.cols; ++j) {
        const T normalised = (value[j] - mean[j]) * inverse_deviation[j];
        to[j] = factor[j] * (gradient[j] - mean_gradient[j] - normalised * mean_weighted[j]);
      }
    }
  });
}

}  // namespace

void CpuDenseOps::batch_norm(const BatchNormCall& call, Stream stream,
                             const DenseWorkspace*) const {
  const ConstOperand& x = call.x;
  const BatchNormOptions& options = call.options;
  visit_floating(x.type, [&](auto element) {
    using T = decltype(element);
    const Moments moments = options.training ? batch_moments(x.as<T>())
                                             : running_moments(call.state, call.shift, x.cols);
    if (options.training) {
      update_running(moments, call.shift, x.rows, options.momentum, call.state);
      for (std::int64_t j = 0; j < x.cols; ++j) {
        set(call.saved_mean, j, moments.mean[j]);
        set(call.saved_inverse_deviation, j, 1 / std::sqrt(moments.variance[j] + options.epsilon));
      }
    }
    normalise_rows(x.as<T>(), moments, call.gamma, call.beta, options.epsilon, call.y.as<T>());
  });
  if (!call.formula.does_nothing()) activate(call.y, {}, call.formula, call.y, stream);
}

void CpuDenseOps::batch_norm_backward(const BatchNormGradCall& call, Stream stream,
                                      const DenseWorkspace* workspace) const {
  const ConstOperand& x = call.x;
  ConstOperand grad_normalised = call.grad_y;
  if (!call.formula.does_nothing()) {
    visit_floating(x.type,
                   [&](auto element) { differentiate_activation<decltype(element)>(call); });
    grad_normalised = call.grad_x;
  }
  visit_floating(x.type, [&](auto element) {
    using T = decltype(element);
    const T* const mean = call.saved_mean.as<T>().data;
    const T* const inverse_deviation = call.saved_inverse_deviation.as<T>().data;
    const MatrixView<const T> grad_y = grad_normalised.as<T>();
    const Buffer<double> sums = gradient_sums(x.as<T>(), mean, inverse_deviation, grad_y);
    for (std::int64_t j = 0; j < x.cols; ++j) {
      set(call.grad_beta, j, sums[j]);
      set(call.grad_gamma, j, sums[x.cols + j]);
    }
    if (call.grad_x.absent()) return;
    write_grad_x(x.as<T>(), call.gamma, mean, inverse_deviation, sums, grad_y, call.grad_x.as<T>());
  });
  if (call.grad_shift.absent()) return;
  activate_backward(call.grad_x, {}, {}, call.grad_x, {}, call.grad_shift, stream, workspace);
}

}  // namespace tessera::ops
