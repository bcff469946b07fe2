// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/weights.hpp"

#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

/// weights[e] = weight(e) * the scale of e's column, for all edges.
template <class Weight>
Buffer<float> times_scales(const SpmmProblem& problem, std::span<const float> column_scales,
                           Weight&& weight) {
  const Graph& graph = problem.graph;
  const bool forward = problem.pass == SpmmPass::forward;
  Buffer<float> weights(graph.num_edges());
  parallel_for(graph.num_rows(), 256, [&](std::int64_t row) {
    for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
      const std::int64_t column = forward ? graph.col_indices()[e] : row;
      weights[e] = column_scales.empty()
                       ? weight(e)
                       : weight(e) * column_scales[static_cast<std::size_t>(column)];
    }
  });
  return weights;
}

}  // namespace

Buffer<float> edge_scales(const SpmmProblem& problem, std::span<const float> column_scales) {
  if (column_scales.empty()) return {};
  return times_scales(problem, column_scales, [](EdgeOffset) { return 1.0f; });
}

Buffer<float> scaled_values(const SpmmProblem& problem, std::span<const float> column_scales) {
  const SharedArray<float>& values = problem.graph.values();
  return times_scales(problem, column_scales, [&](EdgeOffset e) { return values[e]; });
}

}  // namespace tessera::ops
