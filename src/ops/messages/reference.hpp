// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/matrix.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/messages.hpp"

/// The specification of messages: sequential, in double precision. Edge e has row e of the features
/// of edges.
namespace tessera::ops::reference {

void messages(const Graph& graph, Message message, MatrixView<const double> x,
              MatrixView<const double> edge_features, MatrixView<double> y);

void messages_backward(const Graph& graph, Message message, MatrixView<const double> x,
                       MatrixView<const double> edge_features, MatrixView<const double> grad_y,
                       MatrixView<double> grad_x, MatrixView<double> grad_edge_features);

}  // namespace tessera::ops::reference
