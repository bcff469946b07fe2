// SPDX-License-Identifier: Apache-2.0
#include "ops/activation/rows.hpp"
#include "ops/dense/cpu_dense_ops.hpp"
#include "ops/dense/wide_rows.hpp"
#include "ops/plan/check.hpp"

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
      auto rows = activation_rows(values.rows(), bias, first, output.rows());
      rows.bias_sums = sums;
      activate_backward(formula, rows, gradients.rows());
    });
  };
  if (grad_bias.data == nullptr) {
    return for_row_ranges(x.rows, x.cols,
                          [&](auto begin, auto end) { do_rows(begin, end, nullptr); });
  }
  const Buffer<double> sums = sum_over_rows(x.rows, x.cols, do_rows);
  for (std::int64_t j = 0; j < x.cols; ++j) grad_bias(0, j) = rounded_to<T>(sums[j]);
}

}  // namespace

void run_on_cpu(const ActivationCall& call) {
  const ActivationFormula present = at_present(call.formula);
  const auto& [x, bias, formula, y] = call;
  visit_stored(x.type, [&]<class T>() {
    const auto values = bias_values<T>(bias, x.cols);
    for_all_wide_rows<T>(x.rows, x.cols, [&](std::int64_t first, std::int64_t last) {
      const ReadRows<T> from(x.as<T>(), first, last);
      const WrittenRows<T> to(y.as<T>(), first, last);
      activate_forward(present, activation_rows(from.rows(), values, first, to.rows()));
    });
  });
}

void run_on_cpu(const ActivationGradCall& call) {
  visit_stored(call.x.type, [&]<class T>() {
    const auto values = bias_values<T>(call.bias, call.x.cols);
    run_backward(at_present(call.formula), call.x.as<T>(), values, call.grad_y.as<T>(),
                 call.grad_x.as<T>(), call.grad_bias.as<T>());
  });
}

}  // namespace tessera::ops
