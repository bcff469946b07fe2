// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tessera/core/matrix.hpp"
#include "tessera/graph/graph.hpp"

/// The specification of edge_softmax: sequential, in double precision.
namespace tessera::ops::reference {

/// Scores become weights in place: exp(s - max) / sum. Returns max + log(sum), which is minus
/// infinity for no scores. Plain IEEE arithmetic: a score of +inf or not-a-number, or nothing but
/// -inf, makes all weights not-a-number.
double softmax(std::span<double> scores);

/// All matrices are num_edges x heads in CSR order.
void edge_softmax(const Graph& graph, MatrixView<const double> scores, MatrixView<double> weights);

void edge_softmax_backward(const Graph& graph, MatrixView<const double> weights,
                           MatrixView<const double> grad_weights, MatrixView<double> grad_scores);

}  // namespace tessera::ops::reference
