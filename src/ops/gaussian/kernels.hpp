// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/ops/dropout.hpp"
#include "tessera/ops/gaussian.hpp"

namespace tessera::ops {

/// What a kernel needs to draw the same numbers. The share plays no part.
inline DropoutConstants constants_of(const GaussianDraw& draw) {
  return Dropout{0, draw.random, draw.clock}.constants();
}

/// One step of the gradient, of operands that have been checked.
struct GaussianGradient {
  ConstOperand x, grad_y;
  Operand grad_x;
  double weight;  ///< of the divergence of one row
  double* value;
};

void gaussian_on_gpu(ConstOperand x, const DropoutConstants& draw, Operand y, Device device,
                     Stream stream);
void gaussian_backward_on_gpu(const GaussianGradient& gradient, const DropoutConstants& draw,
                              Device device, Stream stream, const DenseWorkspace* workspace);

}  // namespace tessera::ops
