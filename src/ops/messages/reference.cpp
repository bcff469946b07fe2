// SPDX-License-Identifier: Apache-2.0
#include "ops/messages/reference.hpp"

#include <algorithm>

namespace tessera::ops::reference {
namespace {

/// Calls body(edge, target, source) for every edge.
template <class Body>
void for_edges(const Graph& graph, Body&& body) {
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
      body(e, row, graph.col_indices()[e]);
    }
  }
}

void clear(MatrixView<double> matrix) {
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    std::fill_n(matrix.row(i), matrix.cols, 0.0);
  }
}

}  // namespace

void messages(const Graph& graph, Message message, MatrixView<const double> x,
              MatrixView<const double> edge_features, MatrixView<double> y) {
  clear(y);
  for_edges(graph, [&](EdgeOffset e, VertexId target, VertexId source) {
    for (std::int64_t f = 0; f < y.cols; ++f) {
      const double of_source = x(source, f), of_edge = edge_features(e, f);
      const double sum = of_source + of_edge;
      y(target, f) += message == Message::product            ? of_source * of_edge
                      : message == Message::relu && sum <= 0 ? 0
                                                             : sum;
    }
  });
}

void messages_backward(const Graph& graph, Message message, MatrixView<const double> x,
                       MatrixView<const double> edge_features, MatrixView<const double> grad_y,
                       MatrixView<double> grad_x, MatrixView<double> grad_edge_features) {
  clear(grad_x);
  for_edges(graph, [&](EdgeOffset e, VertexId target, VertexId source) {
    for (std::int64_t f = 0; f < grad_y.cols; ++f) {
      const double of_source = x(source, f), of_edge = edge_features(e, f);
      const double grad = grad_y(target, f);
      const bool cut = message == Message::relu && of_source + of_edge <= 0;
      const bool multiplies = message == Message::product;
      grad_x(source, f) += cut ? 0 : multiplies ? grad * of_edge : grad;
      grad_edge_features(e, f) = cut ? 0 : multiplies ? grad * of_source : grad;
    }
  });
}

}  // namespace tessera::ops::reference
