// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/links/negatives.hpp"
#include "tessera/ops/pairs.hpp"

namespace tessera::train {

/// The part of a graph of two kinds of vertices that leads from the first `num_sources` to the
/// others: a row for each of these, a column for each source.
Graph between_kinds(const Graph& graph, VertexId num_sources);

/// Draws pairs that are no edges: of any two vertices, or where there are two kinds of one of the
/// first `num_sources` with one of the others.
class LinkSampler {
 public:
  /// `num_sources` is 0 where there is one kind.
  LinkSampler(const Graph& known, VertexId num_sources);

  links::Pairs draw(const links::Pairs& positives, const links::NegativeOptions& options) const;
  std::int64_t num_negatives_of(VertexId source) const { return sampler_.num_negatives_of(source); }

 private:
  VertexId first_target_;
  links::NegativeSampler sampler_;
};

/// The same where steps of training draw.
ops::NonEdges non_edges_of(const Graph& known, VertexId num_sources, const Place& place);

}  // namespace tessera::train
