// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/dense/dense_ops.hpp"

namespace tessera::ops {

/// Copies a matrix between this process and a GPU, and waits for it. Numbers are converted in this
/// process, so that the GPU needs no memory for it.
void transfer(const ConstOperand& x, const Operand& y, Device device, Stream stream);

}  // namespace tessera::ops
