// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/operand.hpp"

/// Small dense helpers of layers. All operands have one precision unless said: fp64, fp32 or bf16
/// on the CPU; fp32, bf16 or fp16 on a GPU.
namespace tessera::ops {

/// Every element becomes `value`.
void fill(Operand y, double value, Device device = {}, Stream stream = {});

/// Y = X, converted where the precisions differ.
void copy(ConstOperand x, Operand y, Device device = {}, Stream stream = {});

/// Y = X, where X lies in memory of this process and Y on the device. X may be fp64 wherever Y is.
/// Returns when X has been read.
void upload(ConstOperand x, Operand y, Device device = {}, Stream stream = {});

/// Y = X, where X lies on the device and Y in memory of this process. Waits for the result.
void download(ConstOperand x, Operand y, Device device = {}, Stream stream = {});

/// Y = X^T.
void transpose(ConstOperand x, Operand y, Device device = {}, Stream stream = {});

/// Y = alpha * X + beta * Y. With beta = 0 what Y held plays no part. `y` may be the memory of `x`.
void add_scaled(double alpha, ConstOperand x, double beta, Operand y, Device device = {},
                Stream stream = {});

/// Y = (offset + factor) * X + beta * Y with a factor that was learned: a 1 x 1 matrix on the
/// device, which need not be read back.
void add_scaled_by(ConstOperand factor, double offset, ConstOperand x, double beta, Operand y,
                   Device device = {}, Stream stream = {});

/// Each row of Y is that of X times its own number, rows x 1 in fp32: computed in fp32 and rounded
/// once, also where the precisions of X and Y differ. `y` may be the memory of `x` where they do
/// not. Not for fp64.
void scale_rows(ConstOperand x, ConstOperand scale, Operand y, Device device = {},
                Stream stream = {});

/// result = sum over all elements of X * Y, added up in double; `result` is 1 x 1.
void dot(ConstOperand x, ConstOperand y, Operand result, Device device = {}, Stream stream = {},
         const DenseWorkspace* workspace = nullptr);

}  // namespace tessera::ops
