// SPDX-License-Identifier: Apache-2.0
#include "ops/grouped_linear/reference.hpp"

#include <algorithm>

namespace tessera::ops::reference {
namespace {

/// Calls `term(row, group, column of x, column of y, place in the group's weight)` for every
/// product of numbers.
template <class Term>
void for_each_term(const Graph& groups, std::int64_t in, std::int64_t out, std::int64_t blocks,
                   Term&& term) {
  const std::int64_t height = in / blocks, width = out / blocks;
  for (VertexId row = 0; row < groups.num_rows(); ++row) {
    const VertexId group = groups.neighbours(row)[0];
    for (std::int64_t b = 0; b < blocks; ++b) {
      for (std::int64_t i = 0; i < height; ++i) {
        for (std::int64_t j = 0; j < width; ++j) {
          term(row, group, b * height + i, b * width + j, (b * height + i) * width + j);
        }
      }
    }
  }
}

void fill_zero(MatrixView<double> matrix) {
  for (std::int64_t i = 0; i < matrix.rows; ++i) std::fill_n(matrix.row(i), matrix.cols, 0.0);
}

}  // namespace

void grouped_linear(MatrixView<const double> x, const Graph& groups,
                    MatrixView<const double> weights, std::int64_t blocks, MatrixView<double> y) {
  fill_zero(y);
  for_each_term(groups, x.cols, y.cols, blocks,
                [&](auto row, auto group, auto i, auto j, auto place) {
                  y(row, j) += x(row, i) * weights(group, place);
                });
}

void grouped_linear_backward(MatrixView<const double> x, const Graph& groups,
                             MatrixView<const double> weights, std::int64_t blocks,
                             MatrixView<const double> grad_y, MatrixView<double> grad_x,
                             MatrixView<double> grad_weights) {
  if (grad_x.data != nullptr) fill_zero(grad_x);
  if (grad_weights.data != nullptr) fill_zero(grad_weights);
  for_each_term(groups, x.cols, grad_y.cols, blocks,
                [&](auto row, auto group, auto i, auto j, auto place) {
                  if (grad_x.data != nullptr) {
                    grad_x(row, i) += grad_y(row, j) * weights(group, place);
                  }
                  if (grad_weights.data != nullptr) {
                    grad_weights(group, place) += grad_y(row, j) * x(row, i);
                  }
                });
}

}  // namespace tessera::ops::reference
