// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/matrix.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/spmm.hpp"

/// What spmm means. Sequential and in double precision.
///
/// Not-a-number: a sum or mean follows IEEE arithmetic. For max and min a product that is not a
/// number beats every number, and the lowest source among such products wins.
namespace tessera::ops::reference {

/// Y, and if `winners` has memory the winning sources of max and min (-1 for an empty row).
/// `edge_values` (num_edges x 1) replaces the graph's values unless it has no memory.
void spmm(const Graph& graph, Reduction reduction, MatrixView<const double> x,
          MatrixView<const double> edge_values, MatrixView<double> y,
          MatrixView<VertexId> winners = {});

/// Y = drop(activate(Y + residual + bias)) in place; parts without memory are 0. `output` is not
/// looked at: rounding is the caller's.
void spmm_epilogue(const SpmmEpilogue& epilogue, MatrixView<const double> bias,
                   MatrixView<const double> residual, const Random& random, MatrixView<double> y,
                   double residual_scale = 0);

/// The gradients of the same; an output without memory is not computed. `x` is needed for
/// `grad_edge_values`, `winners` for max and min.
void spmm_backward(const Graph& graph, Reduction reduction, MatrixView<const double> grad_y,
                   MatrixView<const double> x, MatrixView<const double> edge_values,
                   MatrixView<const VertexId> winners, MatrixView<double> grad_x,
                   MatrixView<double> grad_edge_values);

/// |A| |X|, the scale that errors of Y are measured on: the sum (mean: the mean) of the absolute
/// products for sums and means, the largest of them for max and min.
void spmm_magnitude(const Graph& graph, Reduction reduction, MatrixView<const double> x,
                    MatrixView<const double> edge_values, MatrixView<double> magnitude);

}  // namespace tessera::ops::reference
