// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/reference.hpp"

#include <cmath>
#include <vector>

#include "core/exact_sum.hpp"
#include "ops/activation/reference.hpp"
#include "ops/spmm/kernel.hpp"

namespace tessera::ops::reference {
namespace {

/// The factor of A[i][j] that is not the edge's own value.
double scale_of(const Graph& graph, VertexId row, VertexId col) {
  const double row_scale = graph.has_row_scale() ? graph.row_scale()[row] : 1;
  const double col_scale = graph.has_col_scale() ? graph.col_scale()[col] : 1;
  return row_scale * col_scale;
}

double weight_of(const Graph& graph, MatrixView<const double> edge_values, VertexId row,
                 EdgeOffset edge) {
  const double own = graph.has_values() ? graph.values()[edge] : 1;
  const double value = edge_values.data != nullptr ? edge_values(edge, 0) : own;
  return value * scale_of(graph, row, graph.col_indices()[edge]);
}

bool beats(Reduction reduction, double challenger, double holder) {
  if (std::isnan(challenger)) return !std::isnan(holder);
  return reduction == Reduction::max ? challenger > holder : challenger < holder;
}

/// One element of Y and its winner.
double reduce(const Graph& graph, Reduction reduction, MatrixView<const double> x,
              MatrixView<const double> edge_values, VertexId row, std::int64_t feature,
              VertexId& winner) {
  ExactSum sum;
  double best = 0;
  winner = -1;
  for (EdgeOffset edge = graph.row_offsets()[row]; edge < graph.row_offsets()[row + 1]; ++edge) {
    const VertexId col = graph.col_indices()[edge];
    const double product = weight_of(graph, edge_values, row, edge) * x(col, feature);
    if (!has_winners(reduction)) {
      sum += product;
    } else if (winner < 0 || beats(reduction, product, best)) {
      best = product;
      winner = col;
    }
  }
  if (has_winners(reduction)) return best;
  const bool divided = reduction == Reduction::mean && graph.degree(row) > 0;
  return divided ? sum.value() / static_cast<double>(graph.degree(row)) : sum.value();
}

SharedArray<float> absolute(const SharedArray<float>& values) {
  std::vector<float> result(values.begin(), values.end());
  for (float& value : result) value = std::abs(value);
  return SharedArray<float>(std::move(result));
}

Matrix<double> absolute(MatrixView<const double> values) {
  Matrix<double> result(values.rows, values.cols);
  for (std::int64_t i = 0; i < values.rows; ++i) {
    for (std::int64_t j = 0; j < values.cols; ++j) result(i, j) = std::abs(values(i, j));
  }
  return result;
}

}  // namespace

void spmm(const Graph& graph, Reduction reduction, MatrixView<const double> x,
          MatrixView<const double> edge_values, MatrixView<double> y,
          MatrixView<VertexId> winners) {
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (std::int64_t feature = 0; feature < x.cols; ++feature) {
      VertexId winner = -1;
      y(row, feature) = reduce(graph, reduction, x, edge_values, row, feature, winner);
      if (winners.data != nullptr) winners(row, feature) = winner;
    }
  }
}

void spmm_epilogue(const SpmmEpilogue& epilogue, MatrixView<const double> bias,
                   MatrixView<const double> residual, const Random& random, MatrixView<double> y,
                   double residual_scale) {
  if (residual.data != nullptr) {
    for (std::int64_t i = 0; i < y.rows; ++i) {
      for (std::int64_t j = 0; j < y.cols; ++j) y(i, j) += (1 + residual_scale) * residual(i, j);
    }
  }
  const ActivationOptions options{epilogue.activation, epilogue.slope, epilogue.alpha,
                                  epilogue.dropout, random};
  bias_activation_dropout(y, bias, options, y);
}

void spmm_backward(const Graph& graph, Reduction reduction, MatrixView<const double> grad_y,
                   MatrixView<const double> x, MatrixView<const double> edge_values,
                   MatrixView<const VertexId> winners, MatrixView<double> grad_x,
                   MatrixView<double> grad_edge_values) {
  ExactSums x_sums(grad_x);
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    const double share =
        reduction == Reduction::mean ? 1 / static_cast<double>(graph.degree(row)) : 1;
    for (EdgeOffset edge = graph.row_offsets()[row]; edge < graph.row_offsets()[row + 1]; ++edge) {
      const VertexId col = graph.col_indices()[edge];
      ExactSum grad_weight;
      for (std::int64_t feature = 0; feature < grad_y.cols; ++feature) {
        if (has_winners(reduction) && winners(row, feature) != col) continue;
        const double grad = grad_y(row, feature) * share;
        x_sums.add(col, feature, weight_of(graph, edge_values, row, edge) * grad);
        if (grad_edge_values.data != nullptr) grad_weight += grad * x(col, feature);
      }
      if (grad_edge_values.data != nullptr) {
        grad_edge_values(edge, 0) = grad_weight.value() * scale_of(graph, row, col);
      }
    }
  }
  x_sums.store();
}

void spmm_magnitude(const Graph& graph, Reduction reduction, MatrixView<const double> x,
                    MatrixView<const double> edge_values, MatrixView<double> magnitude) {
  const Graph positive = graph.with_values(absolute(graph.values()))
                             .with_scales(absolute(graph.row_scale()), absolute(graph.col_scale()));
  spmm(positive, reduction == Reduction::min ? Reduction::max : reduction, absolute(x),
       absolute(edge_values).view(), magnitude);
}

}  // namespace tessera::ops::reference
