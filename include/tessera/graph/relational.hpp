// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "tessera/core/types.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/graph.hpp"

/// Graphs with several kinds of vertices and of edges: knowledge graphs, users with items and
/// shops.
namespace tessera {

/// Vertices of a kind have numbers of their own, from 0 on.
struct VertexKind {
  std::string name;
  VertexId count = 0;

  friend bool operator==(const VertexKind&, const VertexKind&) = default;
};

/// What edges mean, and the numbers of the kinds that they lead from and to.
struct Relation {
  std::string name;
  std::int32_t source = 0;
  std::int32_t target = 0;

  friend bool operator==(const Relation&, const Relation&) = default;
};

/// Facts (head, relation, tail) by their numbers.
struct Triples {
  std::vector<VertexId> heads;
  std::vector<std::int32_t> relations;
  std::vector<VertexId> tails;

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(heads.size()); }
  friend bool operator==(const Triples&, const Triples&) = default;
};

/// Kinds of vertices, and for each relation a graph: its rows are the vertices of the relation's
/// target, its columns those of its source. Any of them may be empty. Copies share their arrays.
class RelationalGraph {
 public:
  /// No kinds and no relations.
  RelationalGraph() = default;
  /// `graphs[r]` has the edges of relation r. Throws what `validate` does.
  RelationalGraph(std::vector<VertexKind> kinds, std::vector<Relation> relations,
                  std::vector<Graph> graphs);

  const std::vector<VertexKind>& kinds() const noexcept { return kinds_; }
  const std::vector<Relation>& relations() const noexcept { return relations_; }
  const Graph& graph(std::int32_t relation) const;

  std::int32_t num_relations() const noexcept {
    return static_cast<std::int32_t>(relations_.size());
  }
  /// Of all kinds, and the number of a kind's first where they stand behind one another.
  VertexId num_vertices() const noexcept;
  VertexId first_vertex(std::int32_t kind) const;
  EdgeOffset num_edges() const noexcept;

  /// Throws `bad_data` for a kind or a relation that is there twice, a relation between kinds that
  /// there are not, a graph of another shape than its kinds, and what `Graph::validate` finds.
  void validate() const;

 private:
  std::vector<VertexKind> kinds_;
  std::vector<Relation> relations_;
  std::vector<Graph> graphs_;
};

/// A line that counts kinds, relations and edges, then one for each of the first relations.
std::ostream& operator<<(std::ostream& out, const RelationalGraph& graph);

/// Vertices of one kind: an edge from the head to the tail of each triple.
RelationalGraph from_triples(const Triples& triples, const VertexKind& vertices,
                             const std::vector<std::string>& relations,
                             Duplicates duplicates = Duplicates::reject);

/// Behind the relations their inverses, called "rev_" and what they turn round, as PyG has them.
RelationalGraph with_inverses(const RelationalGraph& graph);

/// The edges of all relations in one numbering of the vertices, kind after kind, as layers read
/// them: those of one relation into one vertex are a segment. Only segments that have edges are
/// there, in the order of their relations and then of their targets.
struct RelationSegments {
  Graph edges;      ///< segments x vertices: the sources of each segment
  Graph relations;  ///< segments x relations: the one of each segment
  Graph targets;    ///< vertices x segments: those that end in each vertex
};

RelationSegments segments_of(const RelationalGraph& graph);
/// Of edges from heads to tails, each as often as it is listed.
RelationSegments segments_of(const Triples& triples, VertexId num_vertices,
                             std::int32_t num_relations);

}  // namespace tessera
