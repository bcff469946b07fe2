// SPDX-License-Identifier: Apache-2.0
#include "ops/edge_softmax/reference.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "core/exact_sum.hpp"

namespace tessera::ops::reference {

double softmax(std::span<double> scores) {
  double max = -std::numeric_limits<double>::infinity();
  for (const double score : scores) max = score > max ? score : max;
  ExactSum exact;
  for (double& score : scores) {
    score = std::exp(score - max);
    exact += score;
  }
  const double sum = exact.value();
  for (double& score : scores) score /= sum;
  return max + std::log(sum);
}

void edge_softmax(const Graph& graph, MatrixView<const double> scores, MatrixView<double> weights) {
  std::vector<double> row_scores;
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    const EdgeOffset first = graph.row_offsets()[row];
    for (std::int64_t head = 0; head < scores.cols; ++head) {
      row_scores.resize(static_cast<std::size_t>(graph.degree(row)));
      for (std::size_t k = 0; k < row_scores.size(); ++k) {
        row_scores[k] = scores(first + static_cast<EdgeOffset>(k), head);
      }
      softmax(row_scores);
      for (std::size_t k = 0; k < row_scores.size(); ++k) {
        weights(first + static_cast<EdgeOffset>(k), head) = row_scores[k];
      }
    }
  }
}

void edge_softmax_backward(const Graph& graph, MatrixView<const double> weights,
                           MatrixView<const double> grad_weights, MatrixView<double> grad_scores) {
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (std::int64_t head = 0; head < weights.cols; ++head) {
      ExactSum exact;
      for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
        exact += weights(e, head) * grad_weights(e, head);
      }
      const double sum = exact.value();
      for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
        grad_scores(e, head) = weights(e, head) * (grad_weights(e, head) - sum);
      }
    }
  }
}

}  // namespace tessera::ops::reference
