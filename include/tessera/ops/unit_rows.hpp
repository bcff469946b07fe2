// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"
#include "tessera/ops/operand.hpp"

/// The two sides of a cosine with a learned sharpness, as AGNN has it, in one pass each way.
/// Operands have one precision: fp64, fp32 or bf16 on the CPU; fp32, bf16 or fp16 on a GPU.
namespace tessera::ops {

/// unit = x / max(|x|, epsilon) for each row, and scaled = factor * unit, where the factor is a
/// 1 x 1 matrix on the device.
void unit_rows(ConstOperand x, ConstOperand factor, Operand unit, Operand scaled,
               double epsilon = 1e-12, Device device = {}, Stream stream = {});

/// Adds the gradient of x to `grad_x`. The gradients of `unit` and `scaled` may be overwritten.
void unit_rows_backward(ConstOperand x, ConstOperand factor, Operand grad_unit, Operand grad_scaled,
                        Operand grad_x, double epsilon = 1e-12, Device device = {},
                        Stream stream = {});

}  // namespace tessera::ops
