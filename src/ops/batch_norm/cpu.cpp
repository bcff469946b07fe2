// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/activation/rows.hpp"
#include "ops/dense/cpu_dense_ops.hpp"
#include "ops/dense/wide_rows.hpp"
#include "ops/plan/check.hpp"

namespace tessera::ops {
namespace {

/// Element j of a row that may be absent.
double value_or(const ConstOperand& row, std::int64_t j, double otherwise) {
  if (row.absent()) return otherwise;
  return visit_stored(row.type, [&]<class T>() { return static_cast<double>(row.as<T>()(0, j)); });
}

void set(const Operand& row, std::int64_t j, double value) {
  if (row.absent()) return;
  visit_stored(row.type, [&]<class T>() { row.as<T>()(0, j) = rounded_to<T>(value); });
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
  moments.mean = sum_each_row(x.rows, x.cols, [&](std::int64_t i, double* sums) {
    const T* const row = x.row(i);
    for (std::int64_t j = 0; j < x.cols; ++j) sums[j] += static_cast<double>(row[j]);
  });
  for (double& mean : moments.mean) mean /= count;
  const double* const mean = moments.mean.data();
  moments.variance = sum_each_row(x.rows, x.cols, [&](std::int64_t i, double* sums) {
    const T* const row = x.row(i);
    for (std::int64_t j = 0; j < x.cols; ++j) {
      const double distance = static_cast<double>(row[j]) - mean[j];
      sums[j] += distance * distance;
    }
  });
  for (double& variance : moments.variance) variance /= count;
  return moments;
}

/// The same from the first row, distances from it and their squares.
Moments given_moments(const ConstOperand& given, std::int64_t rows) {
  const MatrixView<const double> sums = given.as<double>();
  const double count = std::max(1.0, static_cast<double>(rows));
  Moments moments{Buffer<double>(given.cols), Buffer<double>(given.cols)};
  for (std::int64_t j = 0; j < given.cols; ++j) {
    const double distance = sums(1, j) / count;
    const double square = sums(2, j) / count - distance * distance;
    moments.mean[j] = sums(0, j) + distance;
    moments.variance[j] = square < 0 ? 0 : square;
  }
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

/// y = (x - mean) * factor + shift for each column, and an activation of it. The distance is taken
/// before the product: folding the mean into the shift would lose digits of columns far from 0.
template <class W>
struct Normalisation {
  Buffer<W> mean, factor, shift, no_bias;
  ActivationFormula formula;

  Normalisation(std::int64_t cols, const ActivationFormula& given)
      : mean(cols), factor(cols), shift(cols), no_bias(cols, W{0}), formula(given) {
    formula.dropout = formula.dropout.at_present();
  }

  void normalise(const MatrixView<const W>& x, const MatrixView<W>& y) const {
    for (std::int64_t i = 0; i < x.rows; ++i) {
      const W* const from = x.row(i);
      W* const to = y.row(i);
      for (std::int64_t j = 0; j < x.cols; ++j) to[j] = (from[j] - mean[j]) * factor[j] + shift[j];
    }
  }
};

template <class T>
void write_y(const BatchNormCall& call, const Moments& moments) {
  using W = Wide<T>;
  const std::int64_t cols = call.x.cols;
  Normalisation<W> columns(cols, call.formula);
  for (std::int64_t j = 0; j < cols; ++j) {
    columns.mean[j] = static_cast<W>(moments.mean[j]);
    columns.factor[j] = static_cast<W>(value_or(call.gamma, j, 1) /
                                       std::sqrt(moments.variance[j] + call.options.epsilon));
    // What the mean lost when it was rounded.
    const double lost = moments.mean[j] - static_cast<double>(columns.mean[j]);
    columns.shift[j] =
        static_cast<W>(value_or(call.beta, j, 0) - lost * static_cast<double>(columns.factor[j]));
    if (call.columns.absent()) continue;
    W* const column = call.columns.as<W>().row(j);
    column[0] = columns.mean[j];
    column[1] = columns.factor[j];
    column[2] = columns.shift[j];
    column[3] = 0;
  }
  if (call.y.absent()) return;
  for_all_wide_rows<T>(call.x.rows, cols, [&](std::int64_t first, std::int64_t last) {
    const ReadRows<T> x(call.x.as<T>(), first, last);
    const WrittenRows<T> y(call.y.as<T>(), first, last);
    columns.normalise(x.rows(), y.rows());
    if (columns.formula.does_nothing()) return;
    activate_forward(columns.formula,
                     activation_rows<W>(y.rows(), columns.no_bias, first, y.rows()));
  });
}

/// The gradient of what was normalised, from that of what the activation made of it.
template <class T>
class InnerGradient {
 public:
  using W = Wide<T>;

  explicit InnerGradient(const BatchNormGradCall& call)
      : call_(call), columns_(call.x.cols, call.formula) {
    for (std::int64_t j = 0; j < call.x.cols; ++j) {
      columns_.mean[j] = call.saved_mean.as<W>()(0, j);
      columns_.factor[j] =
          static_cast<W>(value_or(call.gamma, j, 1) * value_or(call.saved_inverse_deviation, j, 1));
      columns_.shift[j] = static_cast<W>(value_or(call.beta, j, 0));
    }
  }

  const W* mean() const noexcept { return columns_.mean.data(); }

  /// Calls `body(first, x, gradient)` on pieces of rows [begin, end), of which `first` is the first
  /// of each. The gradient of y is no longer needed then.
  template <class Body>
  void for_rows(std::int64_t begin, std::int64_t end, Body&& body) const {
    constexpr std::int64_t at_once = 4096;  // elements
    const std::int64_t cols = call_.x.cols;
    const std::int64_t height =
        std::max<std::int64_t>(1, at_once / std::max<std::int64_t>(cols, 1));
    const bool is_given = columns_.formula.does_nothing();
    Buffer<W> made(is_given ? 0 : 2 * height * cols);
    for (std::int64_t first = begin; first < end; first += height) {
      const std::int64_t last = std::min(first + height, end);
      const ReadRows<T> x(call_.x.as<T>(), first, last);
      const ReadRows<T> grad_y(call_.grad_y.as<T>(), first, last);
      if (is_given) {
        body(first, x.rows(), grad_y.rows());
        continue;
      }
      const MatrixView<W> normalised(made.data(), last - first, cols);
      const MatrixView<W> gradient(made.data() + height * cols, last - first, cols);
      columns_.normalise(x.rows(), normalised);
      activate_backward(columns_.formula,
                        activation_rows<W>(normalised, columns_.no_bias, first, gradient),
                        grad_y.rows());
      body(first, x.rows(), MatrixView<const W>(gradient));
    }
  }

 private:
  const BatchNormGradCall& call_;
  Normalisation<W> columns_;
};

/// The sums of the inner gradient and of it times normalised x, of each column: 2 * cols numbers.
template <class T>
Buffer<double> gradient_sums(const InnerGradient<T>& inner, std::int64_t rows, std::int64_t cols,
                             const Wide<T>* inverse_deviation) {
  using W = Wide<T>;
  const W* const mean = inner.mean();
  return sum_over_rows(rows, 2 * cols, [&](auto begin, auto end, double* sums) {
    double* const weighted = sums + cols;
    inner.for_rows(begin, end, [&](std::int64_t, const auto& x, const auto& grad) {
      for (std::int64_t i = 0; i < x.rows; ++i) {
        const W* const value = x.row(i);
        const W* const gradient = grad.row(i);
        for (std::int64_t j = 0; j < cols; ++j) {
          sums[j] += static_cast<double>(gradient[j]);
          weighted[j] +=
              static_cast<double>(gradient[j] * ((value[j] - mean[j]) * inverse_deviation[j]));
        }
      }
    });
  });
}

template <class T>
void write_grad_x(const BatchNormGradCall& call, const InnerGradient<T>& inner,
                  const Wide<T>* inverse_deviation, const Buffer<double>& sums) {
  using W = Wide<T>;
  const std::int64_t cols = call.x.cols;
  const W* const mean = inner.mean();
  const double count = std::max(1.0, static_cast<double>(call.x.rows));
  Buffer<W> factor(cols), mean_gradient(cols), mean_weighted(cols);
  for (std::int64_t j = 0; j < cols; ++j) {
    factor[j] =
        static_cast<W>(value_or(call.gamma, j, 1) * static_cast<double>(inverse_deviation[j]));
    mean_gradient[j] = static_cast<W>(sums[j] / count);
    mean_weighted[j] = static_cast<W>(sums[cols + j] / count);
  }
  for_row_ranges(call.x.rows, cols, [&](std::int64_t begin, std::int64_t end) {
    inner.for_rows(begin, end, [&](std::int64_t first, const auto& x, const auto& grad) {
      const WrittenRows<T> grad_x(call.grad_x.as<T>(), first, first + x.rows);
      for (std::int64_t i = 0; i < x.rows; ++i) {
        const W* const value = x.row(i);
        const W* const gradient = grad.row(i);
        W* const to = grad_x.rows().row(i);
        for (std::int64_t j = 0; j < cols; ++j) {
          const W normalised = (value[j] - mean[j]) * inverse_deviation[j];
          to[j] = factor[j] * (gradient[j] - mean_gradient[j] - normalised * mean_weighted[j]);
        }
      }
    });
  });
}

}  // namespace

void run_on_cpu(const BatchNormCall& call) {
  const ConstOperand& x = call.x;
  const BatchNormOptions& options = call.options;
  visit_stored(x.type, [&]<class T>() {
    const Moments moments = !options.training ? running_moments(call.state, call.shift, x.cols)
                            : call.moments.absent() ? batch_moments(x.as<T>())
                                                    : given_moments(call.moments, x.rows);
    if (options.training) {
      update_running(moments, call.shift, x.rows, options.momentum, call.state);
      for (std::int64_t j = 0; j < x.cols; ++j) {
        set(call.saved_mean, j, moments.mean[j]);
        set(call.saved_inverse_deviation, j, 1 / std::sqrt(moments.variance[j] + options.epsilon));
      }
    }
    write_y<T>(call, moments);
  });
}

void run_on_cpu(const BatchNormGradCall& call) {
  const ConstOperand& x = call.x;
  visit_stored(x.type, [&]<class T>() {
    const InnerGradient<T> inner(call);
    const Wide<T>* const inverse_deviation = call.saved_inverse_deviation.as<Wide<T>>().data;
    const Buffer<double> sums = gradient_sums(inner, x.rows, x.cols, inverse_deviation);
    for (std::int64_t j = 0; j < x.cols; ++j) {
      set(call.grad_beta, j, sums[j]);
      set(call.grad_gamma, j, sums[x.cols + j]);
      // What is added to a whole column is taken away with the mean. The factors tell whether
      // something was not finite.
      set(call.grad_shift, j,
          std::abs(0 * (sums[j] + sums[x.cols + j]) * value_or(call.gamma, j, 1) *
                   static_cast<double>(inverse_deviation[j])));
    }
    if (!call.grad_x.absent()) write_grad_x(call, inner, inverse_deviation, sums);
  });
}

}  // namespace tessera::ops
