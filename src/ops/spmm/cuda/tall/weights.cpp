// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/weights.hpp"

#include <limits>

#include "core/size_range.hpp"
#include "graph/access.hpp"
#include "graph/weight_sizes.hpp"
#include "ops/scales.hpp"
#include "ops/spmm/cuda/tall/scales.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

/// What the products of two groups of numbers can be, at most.
SizeRange products(const SizeRange& a, const SizeRange& b) {
  return {a.smallest * b.smallest, a.largest * b.largest, a.all_finite && b.all_finite};
}

}  // namespace

PlacedArray<float> column_scales(const SpmmProblem& problem) {
  const Graph& graph = problem.graph;
  if (problem.pass == SpmmPass::forward) return detail::GraphAccess::col_scale(graph);
  if (problem.reduction == Reduction::mean) return mean_scale<float>(graph);
  return detail::GraphAccess::row_scale(graph);
}

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

std::string why_not_values(const SpmmProblem& problem) {
  if (!problem.graph.has_values() && !problem.edge_values_expected) return "edges with values only";
  return why_not_weights(problem);
}

std::string why_not_weights(const SpmmProblem& problem) {
  const bool own = problem.graph.has_values();
  // Entries are numbered with 32 bits; at most three of four only fill.
  if (problem.graph.num_edges() > std::numeric_limits<std::int32_t>::max() / 4) {
    return "too many edges";
  }
  const PlacedArray<float> scales = column_scales(problem);
  const bool half = problem.precision == Precision::fp16;
  if (half && problem.edge_values_expected && !scales.empty()) {
    return "products of values and column scales that may be too large for fp16";
  }
  const Graph& graph = problem.graph;
  const SizeRange of_scales = scales.empty() ? SizeRange{1, 1} : weight_sizes(graph, scales);
  if (!own) return why_not_scales(of_scales, problem.precision);
  const SizeRange of_values = weight_sizes(graph, detail::GraphAccess::values(graph));
  // What holds for all products of the two holds for those of edges, which are only some.
  if (why_not_scales(products(of_values, of_scales), problem.precision).empty()) return {};
  if (scales.empty()) return why_not_scales(of_values, problem.precision);
  return why_not_scales(sizes_of(scaled_values(problem, scales.here().span()).span()),
                        problem.precision);
}

float value_factor(const SpmmProblem& problem) {
  if (problem.precision != Precision::fp16) return 1;
  const Graph& graph = problem.graph;
  const PlacedArray<float> scales = column_scales(problem);
  const SizeRange sizes = !graph.has_values() ? weight_sizes(graph, scales)
                          : scales.empty()
                              ? weight_sizes(graph, detail::GraphAccess::values(graph))
                              : sizes_of(scaled_values(problem, scales.here().span()).span());
  return scale_factor(sizes, problem.precision);
}

}  // namespace tessera::ops
