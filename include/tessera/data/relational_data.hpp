// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/data/dataset.hpp"
#include "tessera/graph/relational.hpp"

namespace tessera {

/// A graph with kinds of vertices and relations, and what is known of the vertices.
struct RelationalData {
  std::string name;
  RelationalGraph graph;
  /// Names, features, labels and split of the vertices of each kind. Their graphs have no edges.
  std::vector<Dataset> kinds;
  /// What a reader did that its caller may want to know.
  std::vector<std::string> notes;

  /// Throws `bad_data` where what is known of a kind is not of so many vertices.
  void validate() const;
};

/// So many vertices and no edges.
Graph graph_without_edges(VertexId num_vertices);

/// The only kind whose vertices have labels, or numbers to predict. Throws `bad_data` where none
/// or several have.
std::int32_t labelled_kind(const RelationalData& data);

/// With an inverse of every relation beside it (`with_inverses`).
RelationalData with_inverses(RelationalData data);

}  // namespace tessera
