// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/ops/operand.hpp"

namespace tessera::ops {

/// One number per row of x: 1 / its length, or 1 / `shortest_row` where it is shorter.
void compute_inverse_lengths(ConstOperand x, float* to, Stream stream);

}  // namespace tessera::ops
