// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"
#include "tessera/ops/operand.hpp"

/// Small dense helpers of layers: fp32 or fp64, all operands of one precision unless said.
namespace tessera::ops {

/// Every element becomes `value`.
void fill(Operand y, double value, Device device = {}, Stream stream = {});

/// Y = X, converted where the precisions differ.
void copy(ConstOperand x, Operand y, Device device = {}, Stream stream = {});

/// Y = X^T.
void transpose(ConstOperand x, Operand y, Device device = {}, Stream stream = {});

/// Y = alpha * X + beta * Y. With beta = 0 what Y held plays no part. `y` may be the memory of `x`.
void add_scaled(double alpha, ConstOperand x, double beta, Operand y, Device device = {},
                Stream stream = {});

/// Sum over all elements of X * Y, in double.
double dot(ConstOperand x, ConstOperand y, Device device = {}, Stream stream = {});

}  // namespace tessera::ops
