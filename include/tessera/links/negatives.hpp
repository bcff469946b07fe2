// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tessera/graph/graph.hpp"
#include "tessera/links/split.hpp"
#include "tessera/ops/pairs.hpp"

namespace tessera::links {

using ops::NegativeKind;

struct NegativeOptions {
  NegativeKind kind = NegativeKind::uniform;
  std::int64_t per_positive = 1;  ///< how many for each positive pair
  std::uint64_t seed = 0;
  std::uint32_t step = 0;  ///< of training: another step draws other pairs
};

/// Draws pairs that are no edges of a graph. Every draw is exact, with no attempt that may fail:
/// among the vertices that a source has no edge to, the k-th is found by bisection. Only draws by
/// degree are repeated where they hit an edge, 64 times at most; the last is then uniform.
///
/// In training give the graph of the training edges, so that pairs that are held out may be drawn
/// like any others; to evaluate give the whole graph. In a square graph a vertex is no negative of
/// itself.
class NegativeSampler {
 public:
  explicit NegativeSampler(const Graph& known);

  /// How many pairs are no edges.
  std::int64_t num_negatives() const noexcept { return non_edges_.count(); }
  /// The same for one source, which must be one of the graph.
  std::int64_t num_negatives_of(VertexId source) const noexcept {
    return non_edges_.count_of(source);
  }

  /// Negative `j` of positive pair `i` is pair `i * per_positive + j` of the result. The numbers
  /// drawn depend on seed, step, i and j alone. A graph that has every edge, and by source or
  /// degree a source with an edge to every target, are `bad_data` errors; sources out of range are
  /// `invalid_argument` errors.
  Pairs draw(const Pairs& positives, const NegativeOptions& options) const;

 private:
  VertexId num_sources_;
  ops::NonEdges non_edges_;
};

}  // namespace tessera::links
