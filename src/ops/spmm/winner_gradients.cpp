// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/edge_terms.hpp"

#include "ops/plan/check.hpp"
#include "ops/rows/scales.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

template <class T>
void find_gradients(const Graph& graph, const SpmmGradInputs& inputs, const Operand& gradients) {
  using S = SumOf<T>;
  const auto grad_y = inputs.grad_y.as<T>();
  const auto x = inputs.x.as<T>();
  const auto result = gradients.as<T>();
  const auto scale_of = [](const SharedArray<float>& scales, std::int64_t vertex) {
    return scales.empty() ? S(1) : static_cast<S>(scales[vertex]);
  };
  parallel_for(graph.num_rows(), 64, [&](std::int64_t row) {
    const S row_scale = scale_of(graph.row_scale(), row);
    for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
      const VertexId col = graph.col_indices()[e];
      double sum = 0;
      for (std::int64_t k = 0; k < grad_y.cols; ++k) {
        if (inputs.winners(row, k) != col) continue;
        sum += static_cast<double>(grad_y(row, k)) * static_cast<double>(x(col, k));
      }
      result(e, 0) =
          static_cast<T>(static_cast<S>(sum) * row_scale * scale_of(graph.col_scale(), col));
    }
  });
}

}  // namespace

EdgeValueGradients winner_gradients(const SpmmProblem& problem) {
#ifdef TESSERA_WITH_CUDA
  if (problem.device.kind == DeviceKind::cuda) return cuda_winner_gradients(problem);
#endif
  return visit_precision(problem.precision, [&]<class T>() -> EdgeValueGradients {
    return [graph = problem.graph](const SpmmGradInputs& inputs, const Operand& gradients, Stream) {
      find_gradients<T>(graph, inputs, gradients);
    };
  });
}

}  // namespace tessera::ops
