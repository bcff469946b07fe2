// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/ops/activation.hpp"
#include "tessera/ops/dropout.hpp"

#include "ops/activation/kernels.hpp"
#include "ops/dense_check.hpp"
#include "ops/row_ranges.hpp"

namespace tessera::ops {
namespace {

constexpr Activation all_activations[] = {Activation::none, Activation::relu,
                                          Activation::leaky_relu, Activation::elu};

ActivationFormula checked_formula(const Checker& check, const ActivationOptions& options) {
  check.that(options.dropout >= 0 && options.dropout <= 1,
             fmt::format("dropout is {}, expected 0 to 1", options.dropout));
  check.that(std::isfinite(options.slope), fmt::format("slope is {}", options.slope));
  check.that(std::isfinite(options.alpha), fmt::format("alpha is {}", options.alpha));
  const Dropout dropout{options.dropout, options.random};
  return {options.activation, options.slope, options.alpha, dropout.active(), dropout.constants()};
}

/// The bias as an array of its own, zeros if absent, so that kernels need not ask.
template <class T>
Buffer<T> bias_values(const ConstOperand& bias, std::int64_t cols) {
  Buffer<T> values(cols, T{0});
  for (std::int64_t j = 0; j < bias.cols; ++j) values[j] = bias.as<T>()(0, j);
  return values;
}

template <class T>
ActivationRows<T> rows_of(MatrixView<const T> x, const Buffer<T>& bias, std::int64_t begin,
                          std::int64_t end) {
  ActivationRows<T> rows;
  rows.rows = end - begin;
  rows.cols = x.cols;
  rows.first_element = static_cast<std::uint64_t>(begin * x.cols);
  rows.x = x.row(begin);
  rows.x_stride = x.stride;
  rows.bias = bias.data();
  return rows;
}

void forward(const ActivationFormula& formula, const ActivationRows<float>& rows) {
  activation().forward_fp32(formula, rows);
}
void forward(const ActivationFormula& formula, const ActivationRows<double>& rows) {
  activation().forward_fp64(formula, rows);
}
void backward(const ActivationFormula& formula, const ActivationRows<float>& rows) {
  activation().backward_fp32(formula, rows);
}
void backward(const ActivationFormula& formula, const ActivationRows<double>& rows) {
  activation().backward_fp64(formula, rows);
}

template <class T>
void run_backward(const ActivationFormula& formula, MatrixView<const T> x, const Buffer<T>& bias,
                  MatrixView<const T> grad_y, MatrixView<T> grad_x, MatrixView<T> grad_bias) {
  const auto do_rows = [&](std::int64_t begin, std::int64_t end, double* sums) {
    ActivationRows<T> rows = rows_of(x, bias, begin, end);
    rows.grad_y = grad_y.row(begin);
    rows.grad_y_stride = grad_y.stride;
    if (grad_x.data != nullptr) {
      rows.output = grad_x.row(begin);
      rows.output_stride = grad_x.stride;
    }
    rows.bias_sums = sums;
    backward(formula, rows);
  };
  if (grad_bias.data == nullptr) {
    for_row_ranges(x.rows, x.cols,
                   [&](std::int64_t begin, std::int64_t end) { do_rows(begin, end, nullptr); });
    return;
  }
  const Buffer<double> sums = sum_over_rows(x.rows, x.cols, do_rows);
  for (std::int64_t j = 0; j < x.cols; ++j) grad_bias(0, j) = static_cast<T>(sums[j]);
}

}  // namespace

const char* to_string(Activation activation) noexcept {
  switch (activation) {
    case Activation::none: return "none";
    case Activation::relu: return "relu";
    case Activation::leaky_relu: return "leaky_relu";
    case Activation::elu: return "elu";
  }
  return "unknown";
}

Activation parse_activation(const std::string& text) {
  std::string names;
  for (const Activation activation : all_activations) {
    if (text == to_string(activation)) return activation;
    names += (names.empty() ? "" : ", ") + std::string(to_string(activation));
  }
  throw Error(ErrorCode::invalid_argument, "unknown activation '" + text + "'", "",
              "use one of " + names);
}

void bias_activation_dropout(ConstOperand x, ConstOperand bias, const ActivationOptions& options,
                             Operand y, Device device, Stream) {
  constexpr Checker check("bias_activation_dropout");
  require_available(device);
  check.floating(x, "x");
  check.optional_matrix(bias, "bias", x.precision, 1, x.cols);
  check.matrix(y, "y", x.precision, x.rows, x.cols);
  check.apart_or_same(y, "y", x, "x");
  const ActivationFormula formula = checked_formula(check, options);
  if (x.rows == 0 || x.cols == 0) return;
  visit_floating(x.precision, [&](auto element) {
    using T = decltype(element);
    const Buffer<T> values = bias_values<T>(bias, x.cols);
    for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
      ActivationRows<T> rows = rows_of(x.as<T>(), values, begin, end);
      rows.output = y.as<T>().row(begin);
      rows.output_stride = y.stride;
      forward(formula, rows);
    });
  });
}

void bias_activation_dropout_backward(ConstOperand x, ConstOperand bias,
                                      const ActivationOptions& options, ConstOperand grad_y,
                                      Operand grad_x, Operand grad_bias, Device device, Stream) {
  constexpr Checker check("bias_activation_dropout_backward");
  require_available(device);
  check.floating(x, "x");
  check.optional_matrix(bias, "bias", x.precision, 1, x.cols);
  check.matrix(grad_y, "grad_y", x.precision, x.rows, x.cols);
  check.optional_matrix(grad_x, "grad_x", x.precision, x.rows, x.cols);
  check.optional_matrix(grad_bias, "grad_bias", x.precision, 1, x.cols);
  check.apart_or_same(grad_x, "grad_x", grad_y, "grad_y");
  check.apart(grad_x, "grad_x", x, "x");
  const ActivationFormula formula = checked_formula(check, options);
  if (x.cols == 0 || (grad_x.absent() && grad_bias.absent())) return;
  visit_floating(x.precision, [&](auto element) {
    using T = decltype(element);
    const Buffer<T> values = bias_values<T>(bias, x.cols);
    run_backward(formula, x.as<T>(), values, grad_y.as<T>(), grad_x.as<T>(), grad_bias.as<T>());
  });
}

}  // namespace tessera::ops
