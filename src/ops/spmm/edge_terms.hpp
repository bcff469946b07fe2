// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "ops/spmm/kernel.hpp"
#include "tessera/graph/coo.hpp"

namespace tessera::ops {

/// A matrix as gather-apply-scatter reads it, in the place of a plan: edges in no order, what
/// weighs them, and the self loops that a rule adds. Empty arrays stand for ones, and for no loops.
struct EdgeTerms {
  VertexId num_rows = 0;
  VertexId num_cols = 0;
  EdgeOffset num_edges = 0;
  SharedArray<VertexId> rows;
  SharedArray<VertexId> cols;
  SharedArray<float> values;
  WeightFunction function = WeightFunction::product;
  SharedArray<float> row_numbers;
  SharedArray<float> col_numbers;
  SharedArray<float> loops;            ///< the value of each vertex's added loop, or 0
  SharedArray<std::uint32_t> degrees;  ///< of rows, loops included; where a mean asks
};

/// Of the edges that a problem has in no order, or of its graph. Those of the same edges, for the
/// same place, are shared by all plans that are there at the same time.
std::shared_ptr<const EdgeTerms> edge_terms(const SpmmProblem& problem);

/// Whether the rule of the edges adds self loops.
inline bool adds_loops(const Coo& coo) {
  return coo.rule() != EdgeRule::plain && coo.loop_weight() != 0;
}

/// The same terms on a GPU. Only in a build with CUDA.
EdgeTerms cuda_edge_terms(const Coo& coo, bool with_degrees, const Place& place);
EdgeTerms cuda_edge_terms(const Graph& graph, bool with_degrees, const Place& place);

/// What edge k weighs but for a mean's share, in the arithmetic of S.
template <class S, class Function>
S weight_of(const EdgeTerms& terms, Function function, S value, VertexId row, VertexId col) {
  const auto number = [](const SharedArray<float>& numbers, VertexId vertex) {
    return numbers.empty() ? S(1) : static_cast<S>(numbers[vertex]);
  };
  return function(value, number(terms.row_numbers, row), number(terms.col_numbers, col));
}

}  // namespace tessera::ops
