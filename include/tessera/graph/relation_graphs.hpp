// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/graph/relational.hpp"

/// Further graphs that layers of a relational graph read, in the numbering of `segments_of`.
namespace tessera {

/// Which vertices and which relations belong to which kind.
struct KindGraphs {
  Graph kinds;      ///< vertices x kinds: the one of each vertex
  Graph relations;  ///< kinds x relations: those that end in each kind
};
KindGraphs kinds_of(const RelationalGraph& graph);

/// The sources of relations: a vertex once for each relation that leads from it, in the order of
/// the relations and then of the vertices.
struct RelationSources {
  Graph vertices;   ///< sources x vertices: the vertex that each is
  Graph relations;  ///< sources x relations: the relation of each
  Graph edges;      ///< segments x sources
  Graph targets;    ///< segments x vertices: the one that each segment ends in
};
RelationSources sources_of(const RelationSegments& segments);

/// A graph that takes rows: row i is row `rows[i]` of `count`.
Graph selection(const std::vector<VertexId>& rows, VertexId count);

/// The same kinds and relations, of which only those have edges that end in one kind.
RelationalGraph edges_into(const RelationalGraph& graph, std::int32_t kind);

}  // namespace tessera
