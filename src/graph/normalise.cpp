// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/normalise.hpp"

#include <cmath>

#include "tessera/core/parallel.hpp"
#include "tessera/graph/transform.hpp"

#include "graph/device_build.hpp"
#include "graph/requirements.hpp"

namespace tessera {
namespace {

double row_sum(const Graph& graph, std::int64_t row) {
  const EdgeOffset begin = graph.row_offsets()[row];
  const EdgeOffset end = graph.row_offsets()[row + 1];
  if (!graph.has_values()) return static_cast<double>(end - begin);
  double sum = 0;
  for (EdgeOffset k = begin; k < end; ++k) sum += graph.values()[k];
  return sum;
}

/// One scale per row, computed in double.
template <class Scale>
SharedArray<float> scale_of_rows(const Graph& graph, Scale&& scale) {
  Buffer<float> scales(graph.num_rows());
  parallel_for(graph.num_rows(), even_grain(graph.num_rows()),
               [&](std::int64_t row) { scales[row] = static_cast<float>(scale(row)); });
  return scales;
}

}  // namespace

Graph gcn_normalised(const Graph& graph, bool add_self_loops, float loop_weight) {
  detail::require_square(graph, "GCN normalisation");
  detail::require_no_scales(graph, "GCN normalisation");
  if (graph.device().kind != DeviceKind::cpu) {
    return detail::gcn_normalised_on_device(graph, add_self_loops, loop_weight);
  }
  const Graph looped = add_self_loops ? with_self_loops(graph, loop_weight) : graph;
  // Asks for d <= 0, not for d > 0: a sum that is not a number must not pass for an empty row.
  const SharedArray<float> scale = scale_of_rows(looped, [&](std::int64_t row) {
    const double degree = row_sum(looped, row);
    return degree <= 0 ? 0.0 : 1 / std::sqrt(degree);
  });
  return looped.with_scales(scale, scale);
}

Graph mean_normalised(const Graph& graph) {
  detail::require_no_scales(graph, "mean normalisation");
  const SharedArray<float> scale = scale_of_rows(graph, [&](std::int64_t row) {
    const EdgeOffset degree = graph.degree(static_cast<VertexId>(row));
    return degree == 0 ? 0.0 : 1 / static_cast<double>(degree);
  });
  return graph.with_scales(scale, {});
}

}  // namespace tessera
