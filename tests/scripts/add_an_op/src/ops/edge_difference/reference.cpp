// SPDX-License-Identifier: Apache-2.0
#include "ops/edge_difference/reference.hpp"

namespace tessera::ops::reference {

void edge_difference(const Graph& graph, MatrixView<const double> x,
                     MatrixView<double> differences) {
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
      for (std::int64_t f = 0; f < x.cols; ++f) {
        differences(e, f) = x(row, f) - x(graph.col_indices()[e], f);
      }
    }
  }
}

void edge_difference_backward(const Graph& graph, MatrixView<const double> grad_differences,
                              MatrixView<double> grad_x) {
  for (VertexId v = 0; v < graph.num_rows(); ++v) {
    for (std::int64_t f = 0; f < grad_x.cols; ++f) grad_x(v, f) = 0;
  }
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
      for (std::int64_t f = 0; f < grad_x.cols; ++f) {
        grad_x(row, f) += grad_differences(e, f);
        grad_x(graph.col_indices()[e], f) -= grad_differences(e, f);
      }
    }
  }
}

}  // namespace tessera::ops::reference
