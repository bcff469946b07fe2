// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/matrix.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/sddmm.hpp"

/// What sddmm means. Sequential and in double precision; not-a-number follows IEEE arithmetic.
namespace tessera::ops::reference {

void sddmm(const Graph& graph, EdgeFunction function, std::int64_t heads,
           MatrixView<const double> u, MatrixView<const double> v, MatrixView<double> edges);

/// The gradients of the same; an output without memory is not computed.
void sddmm_backward(const Graph& graph, EdgeFunction function, std::int64_t heads,
                    MatrixView<const double> u, MatrixView<const double> v,
                    MatrixView<const double> grad_edges, MatrixView<double> grad_u,
                    MatrixView<double> grad_v);

}  // namespace tessera::ops::reference
