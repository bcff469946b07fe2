// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/matrix.hpp"
#include "tessera/ops/gemm.hpp"

namespace tessera::ops::reference {

void gemm(Transpose transpose_a, Transpose transpose_b, double alpha, MatrixView<const double> a,
          MatrixView<const double> b, double beta, MatrixView<double> c);

}  // namespace tessera::ops::reference
