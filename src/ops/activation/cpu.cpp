// SPDX-License-Identifier: Apache-2.0
#include "ops/activation/kernels.hpp"
#include "ops/check.hpp"
#include "ops/cpu_dense_ops.hpp"
#include "ops/row_ranges.hpp"

namespace tessera::ops {
namespace {

/// With the step that the clock shows.
ActivationFormula at_present(const ActivationFormula& formula) {
  ActivationFormula present = formula;
  present.dropout = formula.dropout.at_present();
  return present;
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

void CpuDenseOps::activate(ConstOperand x, ConstOperand bias, const ActivationFormula& formula,
                           Operand y, Stream) const {
  const ActivationFormula present = at_present(formula);
  visit_floating(x.type, [&](auto element) {
    using T = decltype(element);
    const Buffer<T> values = bias_values<T>(bias, x.cols);
    for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
      ActivationRows<T> rows = rows_of(x.as<T>(), values, begin, end);
      rows.output = y.as<T>().row(begin);
      rows.output_stride = y.stride;
      forward(present, rows);
    });
  });
}

void CpuDenseOps::activate_backward(ConstOperand x, ConstOperand bias,
                                    const ActivationFormula& formula, ConstOperand grad_y,
                                    Operand grad_x, Operand grad_bias, Stream,
                                    const DenseWorkspace*) const {
  visit_floating(x.type, [&](auto element) {
    using T = decltype(element);
    const Buffer<T> values = bias_values<T>(bias, x.cols);
    run_backward(at_present(formula), x.as<T>(), values, grad_y.as<T>(), grad_x.as<T>(),
                 grad_bias.as<T>());
  });
}

}  // namespace tessera::ops
