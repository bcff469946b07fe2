// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/matrix.hpp"
#include "tessera/graph/graph.hpp"

namespace tessera::ops::reference {

void grouped_linear(MatrixView<const double> x, const Graph& groups,
                    MatrixView<const double> weights, std::int64_t blocks, MatrixView<double> y);

/// Each gradient may have no data.
void grouped_linear_backward(MatrixView<const double> x, const Graph& groups,
                             MatrixView<const double> weights, std::int64_t blocks,
                             MatrixView<const double> grad_y, MatrixView<double> grad_x,
                             MatrixView<double> grad_weights);

}  // namespace tessera::ops::reference
