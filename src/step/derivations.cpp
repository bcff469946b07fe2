// SPDX-License-Identifier: Apache-2.0
#include "step/one_side.hpp"

#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "graph/access.hpp"
#include "graph/loops.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/normalise.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/step/topology.hpp"

namespace tessera::step {
namespace {

double column_sum(const Graph& graph, VertexId col) {
  const Csc& csc = graph.csc();
  const EdgeOffset begin = csc.col_offsets[col];
  const EdgeOffset end = csc.col_offsets[col + 1];
  if (!graph.has_values()) return static_cast<double>(end - begin);
  double sum = 0;
  for (EdgeOffset k = begin; k < end; ++k) sum += graph.values()[csc.csr_positions[k]];
  return sum;
}

}  // namespace

Graph with_rows_alone(const Graph& graph) {
  return graph.with_scales(tessera::detail::GraphAccess::row_scale(graph), {});
}

Graph with_columns_alone(const Graph& graph) {
  return graph.with_scales({}, tessera::detail::GraphAccess::col_scale(graph));
}

std::optional<OneSide> one_side(Derivation derivation) {
  static const std::map<Derivation, OneSide> sides = {
      {gcn_rows, {gcn_adjacency, with_rows_alone}},
      {gcn_rows_without_loops, {gcn_adjacency_without_loops, with_rows_alone}},
      {gcn_columns, {gcn_adjacency, with_columns_alone}},
      {gcn_columns_without_loops, {gcn_adjacency_without_loops, with_columns_alone}}};
  const auto found = sides.find(derivation);
  return found == sides.end() ? std::nullopt : std::optional(found->second);
}

Graph as_given(const Graph& graph) { return graph; }

Graph pattern(const Graph& graph) { return graph.with_values({}).with_scales({}, {}); }

Graph pattern_with_self_loops(const Graph& graph) {
  if (graph.is_square()) return with_self_loops(pattern(graph));
  return tessera::detail::with_first_loops(pattern(graph));
}

Graph gcn_adjacency(const Graph& graph) { return gcn_normalised(graph, true); }

Graph gcn_adjacency_without_loops(const Graph& graph) { return gcn_normalised(graph, false); }

Graph gcn_rows(const Graph& graph) { return with_rows_alone(gcn_adjacency(graph)); }

Graph gcn_rows_without_loops(const Graph& graph) {
  return with_rows_alone(gcn_adjacency_without_loops(graph));
}

Graph gcn_columns(const Graph& graph) { return with_columns_alone(gcn_adjacency(graph)); }

Graph gcn_columns_without_loops(const Graph& graph) {
  return with_columns_alone(gcn_adjacency_without_loops(graph));
}

Graph negated_laplacian_rest(const Graph& graph) {
  const Graph loop_free = without_self_loops(graph);
  Buffer<float> row_scale(graph.num_rows());
  Buffer<float> col_scale(graph.num_rows());
  parallel_for(graph.num_rows(), even_grain(graph.num_rows()), [&](std::int64_t vertex) {
    const double degree = column_sum(loop_free, static_cast<VertexId>(vertex));
    row_scale[vertex] = static_cast<float>(degree <= 0 ? 0.0 : 1 / std::sqrt(degree));
    col_scale[vertex] = -row_scale[vertex];
  });
  return loop_free.with_scales(std::move(row_scale), std::move(col_scale));
}

Graph pooling_graph(std::span<const std::int32_t> graph_ids, std::int64_t num_graphs) {
  // Vertices are sorted by counting: batches of graphs get a pooling graph in every step.
  Buffer<EdgeOffset> offsets(num_graphs + 1, 0);
  for (const std::int32_t id : graph_ids) {
    if (id < 0 || id >= num_graphs) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("graph {} is outside [0, {})", id, num_graphs), "pooling_graph",
                  "number the graphs from 0");
    }
    ++offsets[id + 1];
  }
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  std::vector<EdgeOffset> next(offsets.begin(), offsets.end());
  Buffer<VertexId> vertices(std::ssize(graph_ids));
  for (std::size_t v = 0; v < graph_ids.size(); ++v) {
    vertices[next[static_cast<std::size_t>(graph_ids[v])]++] = static_cast<VertexId>(v);
  }
  const auto num_rows = static_cast<VertexId>(num_graphs);
  const auto num_cols = static_cast<VertexId>(graph_ids.size());
  return Graph(num_rows, num_cols, std::move(offsets), std::move(vertices));
}

}  // namespace tessera::step
