// SPDX-License-Identifier: Apache-2.0
#include "tessera/graph/relation_graphs.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "tessera/graph/transform.hpp"

namespace tessera {
namespace {

/// The number of every vertex among the distinct ones of a list, which are sorted.
std::vector<VertexId> distinct(std::vector<VertexId> list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

}  // namespace

Graph selection(const std::vector<VertexId>& rows, VertexId count) {
  std::vector<EdgeOffset> offsets(rows.size() + 1);
  std::iota(offsets.begin(), offsets.end(), EdgeOffset{0});
  return Graph(static_cast<VertexId>(rows.size()), count, std::move(offsets),
               std::vector<VertexId>(rows));
}

KindGraphs kinds_of(const RelationalGraph& graph) {
  const auto num_kinds = static_cast<VertexId>(graph.kinds().size());
  std::vector<VertexId> kind_of;
  for (VertexId kind = 0; kind < num_kinds; ++kind) {
    const VertexId count = graph.kinds()[static_cast<std::size_t>(kind)].count;
    kind_of.insert(kind_of.end(), static_cast<std::size_t>(count), kind);
  }
  std::vector<EdgeOffset> offsets{0};
  std::vector<VertexId> relations;
  for (VertexId kind = 0; kind < num_kinds; ++kind) {
    for (std::int32_t r = 0; r < graph.num_relations(); ++r) {
      if (graph.relations()[static_cast<std::size_t>(r)].target == kind) relations.push_back(r);
    }
    offsets.push_back(std::ssize(relations));
  }
  return {selection(kind_of, num_kinds),
          Graph(num_kinds, graph.num_relations(), std::move(offsets), std::move(relations))};
}

RelationSources sources_of(const RelationSegments& segments) {
  const VertexId count = segments.edges.num_rows(), num_vertices = segments.edges.num_cols();
  std::vector<VertexId> vertices, relations, columns, targets(static_cast<std::size_t>(count));
  std::vector<VertexId> number_of(static_cast<std::size_t>(num_vertices));
  columns.reserve(static_cast<std::size_t>(segments.edges.num_edges()));
  for (VertexId first = 0; first < count;) {
    const VertexId relation = segments.relations.neighbours(first)[0];
    VertexId last = first;
    std::vector<VertexId> all;
    for (; last < count && segments.relations.neighbours(last)[0] == relation; ++last) {
      const auto row = segments.edges.neighbours(last);
      all.insert(all.end(), row.begin(), row.end());
    }
    for (const VertexId vertex : distinct(all)) {
      number_of[static_cast<std::size_t>(vertex)] = static_cast<VertexId>(vertices.size());
      vertices.push_back(vertex);
      relations.push_back(relation);
    }
    for (const VertexId vertex : all) {
      columns.push_back(number_of[static_cast<std::size_t>(vertex)]);
    }
    first = last;
  }
  for (VertexId vertex = 0; vertex < segments.targets.num_rows(); ++vertex) {
    for (const VertexId segment : segments.targets.neighbours(vertex)) {
      targets[static_cast<std::size_t>(segment)] = vertex;
    }
  }
  const auto num_sources = static_cast<VertexId>(vertices.size());
  Graph edges(count, num_sources, segments.edges.row_offsets(), std::move(columns));
  if (segments.edges.has_repeated_edges()) edges = edges.with_repeated_edges();
  return {selection(vertices, num_vertices), selection(relations, segments.relations.num_cols()),
          std::move(edges), selection(targets, num_vertices)};
}

RelationalGraph edges_into(const RelationalGraph& graph, std::int32_t kind) {
  std::vector<Graph> graphs;
  for (std::int32_t r = 0; r < graph.num_relations(); ++r) {
    const Graph& edges = graph.graph(r);
    const bool ends_there = graph.relations()[static_cast<std::size_t>(r)].target == kind;
    const auto rows = static_cast<std::size_t>(edges.num_rows());
    graphs.push_back(ends_there
                         ? edges
                         : Graph(edges.num_rows(), edges.num_cols(),
                                 std::vector<EdgeOffset>(rows + 1, 0), std::vector<VertexId>()));
  }
  return {graph.kinds(), graph.relations(), std::move(graphs)};
}

}  // namespace tessera
