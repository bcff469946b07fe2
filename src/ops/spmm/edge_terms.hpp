// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
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

/// Computes the gradient of edge values, in the order of the edges.
using EdgeValueGradients =
    std::function<void(const SpmmGradInputs& inputs, const Operand& gradients, Stream stream)>;

/// Under max and min: a dot product of the features of the two ends, over the elements that the
/// edge's source won.
EdgeValueGradients winner_gradients(const SpmmProblem& problem);
/// Of a GPU. Only in a build with CUDA.
EdgeValueGradients cuda_winner_gradients(const SpmmProblem& problem);

/// The gradient of edge values in the order of the edges: a dot product of the features of both
/// ends, times what the weight changes by.
EdgeValueGradients edge_dots(const SpmmProblem& problem);
/// Of a GPU. Only in a build with CUDA.
EdgeValueGradients cuda_edge_dots(const SpmmProblem& problem);

/// A kernel on the rows that were made of edges in no order, for runs that bring values in the
/// order of those edges: they are weighed and moved to where rows have them, and loops that a rule
/// added keep their weight. `problem.edges` are the edges, `problem.graph` is what was made of
/// them.
std::unique_ptr<const PreparedSpmm> in_edge_order(std::unique_ptr<const PreparedSpmm> by_rows,
                                                  const SpmmProblem& problem);
/// How values of a run come to the places that rows have for them, stored as they are.
using MoveValues = std::function<void(const ConstOperand& edge_values, void* moved, Stream stream)>;
/// On a GPU. Only in a build with CUDA.
MoveValues cuda_move_values(const SpmmProblem& problem);

}  // namespace tessera::ops
