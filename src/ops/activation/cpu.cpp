// SPDX-License-Identifier: Apache-2.0
#include "ops/activation/rows.hpp"
#include "ops/check.hpp"
#include "ops/cpu_dense_ops.hpp"
#include "ops/row_ranges.hpp"
#include "ops/wide_rows.hpp"

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
Buffer<Wide<T>> bias_values(const ConstOperand& bias, std::int64_t cols) {
  if (!bias.absent()) return wide_values(bias.as<T>());
  return Buffer<Wide<T>>(cols, 0);
}

template <class T>
void run_backward(const ActivationFormula& formula, MatrixView<const T> x,
                  const Buffer<Wide<T>>& bias, MatrixView<const T> grad_y, MatrixView<T> grad_x,
                  MatrixView<T> grad_bias) {
  const auto do_rows = [&](std::int64_t begin, std::int64_t end, double* sums) {
    for_wide_rows<T>(begin, end, x.cols, [&](std::int64_t first, std::int64_t last) {
      const ReadRows<T> values(x, first, last);
      const ReadRows<T> gradients(grad_y, first, last);
      const WrittenRows<T> output(grad_x, first, last);
      ActivationRows<Wide<T>> rows = activation_rows(values.rows(), bias, first);
      rows.grad_y = gradients.rows().data;
      rows.grad_y_stride = gradients.rows().stride;
      rows.output = output.rows().data;
      rows.output_stride = output.rows().stride;
      rows.bias_sums = sums;
      activate_backward(formula, rows);
    });
  };
  if (grad_bias.data == nullptr) {
    for_row_ranges(x.rows, x.cols,
                   [&](std::int64_t begin, std::int64_t end) { do_rows(begin, end, nullptr); });
    return;
  }
  const Buffer<double> sums = sum_over_rows(x.rows, x.cols, do_rows);
  for (std::int64_t j = 0; j < x.cols; ++j) grad_bias(0, j) = rounded_to<T>(sums[j]);
}

}  // namespace

void CpuDenseOps::activate(ConstOperand x, ConstOperand bias, const ActivationFormula& formula,
                           Operand y, Stream) const {
  const ActivationFormula present = at_present(formula);
  visit_floating(x.type, [&](auto element) {
    using T = decltype(element);
    const auto values = bias_values<T>(bias, x.cols);
    for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
      for_wide_rows<T>(begin, end, x.cols, [&](std::int64_t first, std::int64_t last) {
        const ReadRows<T> from(x.as<T>(), first, last);
        const WrittenRows<T> to(y.as<T>(), first, last);
        ActivationRows<Wide<T>> rows = activation_rows(from.rows(), values, first);
        rows.output = to.rows().data;
        rows.output_stride = to.rows().stride;
        activate_forward(present, rows);
      });
    });
  });
}

void CpuDenseOps::activate_backward(ConstOperand x, ConstOperand bias,
                                    const ActivationFormula& formula, ConstOperand grad_y,
                                    Operand grad_x, Operand grad_bias, Stream,
                                    const DenseWorkspace*, const GradientFactors&) const {
  visit_floating(x.type, [&](auto element) {
    using T = decltype(element);
    const auto values = bias_values<T>(bias, x.cols);
    run_backward(at_present(formula), x.as<T>(), values, grad_y.as<T>(), grad_x.as<T>(),
                 grad_bias.as<T>());
  });
}

}  // namespace tessera::ops
