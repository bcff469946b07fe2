// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <numeric>

#include "tessera/graph/relation_graphs.hpp"
#include "tessera/nn/relational_model.hpp"

namespace tessera::nn {
namespace {

/// Vertices x rows: where the vertices of some kinds stand, one behind the other.
Graph places(const RelationalGraph& graph, const std::vector<bool>& chosen) {
  std::vector<EdgeOffset> offsets{0};
  EdgeOffset rows = 0;
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    for (VertexId v = 0; v < graph.kinds()[k].count; ++v) {
      rows += chosen[k] ? 1 : 0;
      offsets.push_back(rows);
    }
  }
  std::vector<VertexId> columns(static_cast<std::size_t>(rows));
  std::iota(columns.begin(), columns.end(), 0);
  return Graph(graph.num_vertices(), static_cast<VertexId>(rows), std::move(offsets),
               std::move(columns));
}

/// Rows x kinds with features: the one of each row.
Graph featured_kinds(const RelationalGraph& graph, const std::vector<bool>& has_features) {
  std::vector<VertexId> kinds;
  VertexId count = 0;
  for (std::size_t k = 0; k < has_features.size(); ++k) {
    if (!has_features[k]) continue;
    kinds.insert(kinds.end(), static_cast<std::size_t>(graph.kinds()[k].count), count++);
  }
  return selection(kinds, count);
}

void append_layer(RelationalKind kind, const RelationalGraph& graph, std::vector<Graph>& graphs) {
  const RelationSegments segments = segments_of(graph);
  graphs.insert(graphs.end(), {segments.edges, segments.relations, segments.targets});
  if (kind == RelationalKind::rgcn) return;
  const KindGraphs kinds = kinds_of(graph);
  graphs.insert(graphs.end(), {kinds.kinds, kinds.relations});
  if (kind == RelationalKind::sage) return;
  const RelationSources sources = sources_of(segments);
  graphs.insert(graphs.end(),
                {sources.vertices, sources.relations, sources.edges, sources.targets});
}

Graph rows_of_kind(const RelationalGraph& graph, std::int32_t kind) {
  std::vector<VertexId> rows(
      static_cast<std::size_t>(graph.kinds()[static_cast<std::size_t>(kind)].count));
  std::iota(rows.begin(), rows.end(), graph.first_vertex(kind));
  return selection(rows, graph.num_vertices());
}

}  // namespace

std::vector<Graph> encoder_graphs(const RelationalGraph& graph,
                                  const std::vector<bool>& has_features) {
  std::vector<bool> others = has_features;
  others.flip();
  const bool any = std::find(has_features.begin(), has_features.end(), true) != has_features.end();
  if (!any) return {};
  return {featured_kinds(graph, has_features), places(graph, has_features), places(graph, others)};
}

std::vector<Graph> model_graphs(const RelationalModelOptions& options, const RelationalGraph& graph,
                                const std::vector<bool>& has_features, std::int32_t kind) {
  std::vector<Graph> graphs = encoder_graphs(graph, has_features);
  std::vector<Graph> layer;
  if (options.layers > 1) append_layer(options.kind, graph, layer);
  for (std::int64_t i = 0; i + 1 < options.layers; ++i) {
    graphs.insert(graphs.end(), layer.begin(), layer.end());
  }
  append_layer(options.kind, edges_into(graph, kind), graphs);
  graphs.push_back(rows_of_kind(graph, kind));
  return graphs;
}

}  // namespace tessera::nn
