// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/matrix.hpp"
#include "tessera/graph/graph.hpp"

/// The specification of edge_difference: sequential, in double precision.
namespace tessera::ops::reference {

void edge_difference(const Graph& graph, MatrixView<const double> x,
                     MatrixView<double> differences);
void edge_difference_backward(const Graph& graph, MatrixView<const double> grad_differences,
                              MatrixView<double> grad_x);

}  // namespace tessera::ops::reference
