// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/half_patterns.hpp"

#include "graph/access.hpp"
#include "ops/scales.hpp"
#include "ops/spmm/cuda/kernels.hpp"

namespace tessera::ops {

PlacedArray<float> scales_of_rows(const SpmmProblem& problem) {
  const Graph& graph = problem.graph;
  if (problem.pass == SpmmPass::backward) return detail::GraphAccess::col_scale(graph);
  if (problem.reduction == Reduction::mean) return mean_scale<float>(graph);
  return detail::GraphAccess::row_scale(graph);
}

std::string why_not_from_registers(const SpmmProblem& problem) {
  const bool mean = problem.reduction == Reduction::mean;
  if (problem.reduction != Reduction::sum && !mean) return "sums and means only";
  if (problem.heads > 1) return "one head only";
  if (problem.edge_features) return "features of edges, not of vertices";
  if (problem.graph.num_edges() == 0) return "no edges";
  if (problem.features == 0) return "no features";
  if (problem.features > max_features_of_rows) return "too many features";
  return {};
}

std::string why_not_half(const SpmmProblem& problem) {
  const bool half = problem.precision == Precision::bf16 || problem.precision == Precision::fp16;
  return half ? why_not_from_registers(problem) : "16-bit features only";
}

std::string why_not_half_pattern(const SpmmProblem& problem) {
  const bool forward = problem.pass == SpmmPass::forward;
  const bool mean = problem.reduction == Reduction::mean;
  const Graph& graph = problem.graph;
  if (graph.has_values() || problem.edge_values_expected) return "a pattern without values only";
  // A product with a scale does not fit into 16 bits.
  if (forward ? graph.has_col_scale() : graph.has_row_scale() || mean) {
    return "columns without scales only";
  }
  return why_not_half(problem);
}

}  // namespace tessera::ops
