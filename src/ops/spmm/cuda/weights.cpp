// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/weights.hpp"

#include <limits>

#include "core/size_range.hpp"
#include "cuda/array.hpp"
#include "cuda/rows.hpp"
#include "graph/access.hpp"
#include "graph/weight_sizes.hpp"
#include "ops/rows/scales.hpp"
#include "ops/windows/values.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

/// What the products of two groups of numbers can be, at most.
SizeRange products(const SizeRange& a, const SizeRange& b) {
  return {a.smallest * b.smallest, a.largest * b.largest, a.all_finite && b.all_finite};
}

/// The graph's own values, each times the scale of the column that its edge has in the translated
/// side.
Buffer<float> scaled_values(const SpmmProblem& problem, const SharedArray<float>& column_scales) {
  const Graph& graph = problem.graph;
  Buffer<float> weights(graph.num_edges());
  parallel_for(graph.num_rows(), 256, [&](std::int64_t row) {
    for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
      const std::int64_t column = problem.is_forward() ? graph.col_indices()[e] : row;
      weights[e] = graph.values()[e] * column_scales[column];
    }
  });
  return weights;
}

/// What edges of the translated side are multiplied by.
SizeRange sizes_of_weights(const SpmmProblem& problem) {
  const Graph& graph = problem.graph;
  const PlacedArray<float> scales = column_scales(problem);
  if (graph.has_values() && !scales.empty()) {
    return tessera::sizes_of(scaled_values(problem, scales.here()).span());
  }
  if (graph.has_values()) return weight_sizes(graph, detail::GraphAccess::values(graph));
  return scales.empty() ? SizeRange{1, 1} : weight_sizes(graph, scales);
}

/// What the graph's own values, or 1 where it has none, are multiplied by, so that fp16 holds their
/// products with scales.
float value_factor(const SpmmProblem& problem) {
  return problem.precision == Precision::fp16
             ? scale_factor(sizes_of_weights(problem), problem.precision)
             : 1;
}

}  // namespace

PlacedArray<float> column_scales(const SpmmProblem& problem) {
  const Graph& graph = problem.graph;
  if (problem.is_forward()) return detail::GraphAccess::col_scale(graph);
  if (problem.reduction == Reduction::mean) return mean_scale<float>(graph);
  return detail::GraphAccess::row_scale(graph);
}

PlacedArray<float> row_scales(const SpmmProblem& problem) {
  return problem.is_forward() ? detail::GraphAccess::row_scale(problem.graph)
                              : detail::GraphAccess::col_scale(problem.graph);
}

std::string why_not_values(const SpmmProblem& problem) {
  if (!problem.graph.has_values() && !problem.edge_values_expected) return "edges with values only";
  return why_not_weights(problem);
}

std::string why_not_weights(const SpmmProblem& problem) {
  // Entries are numbered with 32 bits; at most three of four only fill.
  if (problem.graph.num_edges() > std::numeric_limits<std::int32_t>::max() / 4) {
    return "too many edges";
  }
  const Graph& graph = problem.graph;
  const bool scaled = has_column_scales(problem);
  if (problem.precision == Precision::fp16 && problem.edge_values_expected && scaled) {
    return "products of values and column scales that may be too large for fp16";
  }
  if (graph.has_values() && scaled) {
    // What holds for all products of the two holds for those of edges, which are only some.
    const SizeRange all = products(weight_sizes(graph, detail::GraphAccess::values(graph)),
                                   weight_sizes(graph, column_scales(problem)));
    if (why_not_scales(all, problem.precision).empty()) return {};
  }
  return why_not_scales(sizes_of_weights(problem), problem.precision);
}

PackedWeights pack_weights(const SpmmProblem& problem, std::span<const std::int32_t> edges,
                           bool with_values) {
  const Place place = problem.place();
  PackedWeights packed;
  packed.edge_scales =
      edge_scales(*cuda::device_rows(problem.graph, place),
                  cuda::array_in(column_scales(problem), place), problem.is_forward(), place);
  if (!with_values) return packed;
  const SharedArray<float> own = cuda::array_in(detail::GraphAccess::values(problem.graph), place);
  ValueSource source{own.data()};
  source.edge_scales = packed.edge_scales.data();
  source.factor = value_factor(problem);
  packed.unit = 1 / source.factor;
  packed.values = Buffer<std::uint32_t>(std::ssize(edges), place);
  // Packing reads `edges` ahead of the kernels before it; clearing, which overlaps nothing, keeps
  // it apart from those that make them.
  cuda::clear(packed.values, place);
  pack_values(edges, source, problem.precision, packed.values.data(), place.stream);
  return packed;
}

}  // namespace tessera::ops
