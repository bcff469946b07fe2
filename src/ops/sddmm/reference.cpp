// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/reference.hpp"

#include "core/exact_sum.hpp"

namespace tessera::ops::reference {
void sddmm(const Graph& graph, EdgeFunction function, std::int64_t heads,
           MatrixView<const double> u, MatrixView<const double> v, MatrixView<double> edges) {
  const std::int64_t width = u.cols / heads;
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (EdgeOffset edge = graph.row_offsets()[row]; edge < graph.row_offsets()[row + 1]; ++edge) {
      const VertexId col = graph.col_indices()[edge];
      for (std::int64_t head = 0; head < heads; ++head) {
        if (function == EdgeFunction::add) {
          edges(edge, head) = u(row, head) + v(col, head);
          continue;
        }
        ExactSum sum;
        for (std::int64_t k = head * width; k < (head + 1) * width; ++k) {
          sum += u(row, k) * v(col, k);
        }
        edges(edge, head) = sum.value();
      }
    }
  }
}

void sddmm_backward(const Graph& graph, EdgeFunction function, std::int64_t heads,
                    MatrixView<const double> u, MatrixView<const double> v,
                    MatrixView<const double> grad_edges, MatrixView<double> grad_u,
                    MatrixView<double> grad_v) {
  ExactSums u_sums(grad_u), v_sums(grad_v);
  const bool is_dot = function == EdgeFunction::dot;
  const std::int64_t width = u.cols / heads;
  for (VertexId row = 0; row < graph.num_rows(); ++row) {
    for (EdgeOffset edge = graph.row_offsets()[row]; edge < graph.row_offsets()[row + 1]; ++edge) {
      const VertexId col = graph.col_indices()[edge];
      for (std::int64_t k = 0; k < u.cols; ++k) {
        const double grad = grad_edges(edge, k / width);
        u_sums.add(row, k, grad * (is_dot ? v(col, k) : 1));
        v_sums.add(col, k, grad * (is_dot ? u(row, k) : 1));
      }
    }
  }
  u_sums.store();
  v_sums.store();
}

}  // namespace tessera::ops::reference
