// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/reference.hpp"

#include "core/exact_sum.hpp"
#include "ops/activation/reference.hpp"
#include "ops/gemm/reference.hpp"
#include "ops/spmm/reference.hpp"

namespace tessera::ops::reference {
namespace {

void add_scaled(double factor, MatrixView<const double> from, MatrixView<double> to) {
  for (std::int64_t i = 0; i < to.rows; ++i) {
    for (std::int64_t j = 0; j < to.cols; ++j) to(i, j) += factor * from(i, j);
  }
}

/// Z = A X + (1 + self_scale) X.
Matrix<double> sums_of(const Graph& graph, const AggregateUpdateOptions& options,
                       const AggregateUpdateNumbers& numbers) {
  Matrix<double> sums(graph.num_rows(), numbers.x.cols);
  spmm(graph, options.reduction, numbers.x, {}, sums);
  if (options.self) add_scaled(1 + numbers.self_scale, numbers.x, sums);
  return sums;
}

}  // namespace

void aggregate_update(const Graph& graph, const AggregateUpdateOptions& options,
                      const AggregateUpdateNumbers& numbers, MatrixView<double> y,
                      MatrixView<double> aggregated) {
  const Matrix<double> sums = sums_of(graph, options, numbers);
  if (aggregated.data != nullptr) {
    for (std::int64_t i = 0; i < sums.rows(); ++i) {
      for (std::int64_t j = 0; j < sums.cols(); ++j) aggregated(i, j) = sums(i, j);
    }
  }
  gemm(Transpose::no, Transpose::yes, 1, sums, numbers.weight, 0, y);
  if (options.root) gemm(Transpose::no, Transpose::yes, 1, numbers.x, numbers.root_weight, 1, y);
  bias_activation_dropout(
      y, numbers.bias,
      {options.activation, options.slope, options.alpha, options.dropout, numbers.random}, y);
}

void aggregate_update_backward(const Graph& graph, const AggregateUpdateOptions& options,
                               const AggregateUpdateNumbers& numbers,
                               MatrixView<const double> grad_y,
                               const AggregateUpdateGradients& gradients) {
  if (gradients.x.data != nullptr) {
    Matrix<double> grad_sums(grad_y.rows, numbers.weight.cols);
    gemm(Transpose::no, Transpose::no, 1, grad_y, numbers.weight, 0, grad_sums);
    spmm_backward(graph, options.reduction, grad_sums, {}, {}, {}, gradients.x, {});
    if (options.self) add_scaled(1 + numbers.self_scale, grad_sums, gradients.x);
    if (options.root) {
      gemm(Transpose::no, Transpose::no, 1, grad_y, numbers.root_weight, 1, gradients.x);
    }
  }
  if (gradients.weight.data != nullptr) {
    gemm(Transpose::yes, Transpose::no, 1, grad_y, sums_of(graph, options, numbers), 0,
         gradients.weight);
  }
  if (gradients.root_weight.data != nullptr) {
    gemm(Transpose::yes, Transpose::no, 1, grad_y, numbers.x, 0, gradients.root_weight);
  }
  if (gradients.bias.data != nullptr) {
    ExactSums sums(gradients.bias);
    for (std::int64_t i = 0; i < grad_y.rows; ++i) {
      for (std::int64_t j = 0; j < grad_y.cols; ++j) sums.add(0, j, grad_y(i, j));
    }
    sums.store();
  }
}

}  // namespace tessera::ops::reference
