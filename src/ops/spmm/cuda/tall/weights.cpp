// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/weights.hpp"

#include "tessera/core/parallel.hpp"

namespace tessera::ops {

Buffer<float> scaled_values(const SpmmProblem& problem, std::span<const float> column_scales) {
  const Graph& graph = problem.graph;
  const SharedArray<float>& values = graph.values();
  const bool forward = problem.pass == SpmmPass::forward;
  Buffer<float> weights(graph.num_edges());
  parallel_for(graph.num_rows(), 256, [&](std::int64_t row) {
    for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
      const std::int64_t column = forward ? graph.col_indices()[e] : row;
      weights[e] = column_scales.empty()
                       ? values[e]
                       : values[e] * column_scales[static_cast<std::size_t>(column)];
    }
  });
  return weights;
}

}  // namespace tessera::ops
