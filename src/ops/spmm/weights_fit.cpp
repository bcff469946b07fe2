// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/number_limits.hpp"
#include "graph/access.hpp"
#include "graph/weight_sizes.hpp"
#include "ops/spmm/kernel.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

double largest_of(const Graph& graph, const PlacedArray<float>& factors) {
  return factors.empty() ? 1 : static_cast<double>(weight_sizes(graph, factors).largest);
}

double factor_of(const SharedArray<float>& factors, std::int64_t i) {
  const double size = factors.empty() ? 1 : std::abs(static_cast<double>(factors[i]));
  return std::isfinite(size) ? size : 0;
}

/// The largest weight of all edges, each the product of its factors.
double largest_weight(const Graph& graph) {
  const SharedArray<VertexId>& columns = graph.col_indices();
  return parallel_reduce(
      graph.num_rows(), even_grain(graph.num_rows()), 0.0,
      [&](std::int64_t begin, std::int64_t end) {
        double largest = 0;
        for (std::int64_t row = begin; row < end; ++row) {
          const double scale = factor_of(graph.row_scale(), row);
          for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
            largest = std::max(largest, scale * factor_of(graph.values(), e) *
                                            factor_of(graph.col_scale(), columns[e]));
          }
        }
        return largest;
      },
      [](double a, double b) { return std::max(a, b); });
}

}  // namespace

void check_weights_fit(const SpmmProblem& problem) {
  const Graph& graph = problem.graph;
  if (problem.edge_values_expected || !graph.is_weighted()) return;
  const double limit = limits_of(problem.precision).largest;
  using Of = detail::GraphAccess;
  const double at_most = largest_of(graph, Of::row_scale(graph)) *
                         largest_of(graph, Of::values(graph)) *
                         largest_of(graph, Of::col_scale(graph));
  if (at_most <= limit) return;
  const double largest = largest_weight(graph);
  if (largest <= limit) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("{} ends at {:.6g}, and the largest weight of the graph is {:.6g}",
                          to_string(problem.precision), limit, largest),
              "precision", "use bf16 or fp32, or divide the weights by a constant");
}

}  // namespace tessera::ops
