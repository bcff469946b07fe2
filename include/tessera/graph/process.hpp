// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tessera/graph/build.hpp"

/// Graph processing: from edges in no order to all that the passes of a model read of a graph. One
/// phase, which a training that keeps its graph goes through once, and one whose graph is new in
/// every step goes through in every step. docs/design/processing.md.
namespace tessera {

/// What a model makes of edges before it multiplies with them.
enum class EdgeRule {
  plain,   ///< nothing: GIN, SAGE
  looped,  ///< every self loop is there, edges have no values: GAT, AGNN
  gcn,     ///< every self loop is there, D^-1/2 (A + I) D^-1/2: see `gcn_normalised`
};

const char* to_string(EdgeRule rule) noexcept;
EdgeRule parse_edge_rule(const std::string& text);

struct ProcessOptions : BuildOptions {
  EdgeRule rule = EdgeRule::plain;
  /// The value of every self loop that a rule adds (PyG's `improved` GCN has 2); 0: none is added.
  /// Any other than 0 and 1 gives the edges values, of 1 where they have none.
  float loop_weight = 1;
  /// Whether the edges are wanted by source as well, as backward passes read them.
  bool both_sides = true;
};

/// Edges (source, target) in any order, as `from_edges` takes them. The same bits as `from_edges`,
/// then `with_self_loops` or `gcn_normalised`, then `csc`, on either device. On a GPU self loops
/// are sorted in together with the edges, and the process waits once, or twice for both sides;
/// where edges that occur several times are merged, the steps are taken one after the other.
Graph process_edges(VertexId num_vertices, const Indices& sources, const Indices& targets,
                    std::span<const float> weights = {}, const ProcessOptions& options = {});

}  // namespace tessera
