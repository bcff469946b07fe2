// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/operand.hpp"

/// A dense layer, as PyTorch's Linear: W is out x in, the bias 1 x out. The types are those of
/// `gemm`, all matrices of the same one, and `arithmetic` is as there.
namespace tessera::ops {

/// y = x W^T + bias. The bias may be absent.
void linear(ConstOperand x, ConstOperand weight, ConstOperand bias, Operand y, Device device = {},
            Stream stream = {}, const DenseWorkspace* workspace = nullptr,
            Precision arithmetic = Precision::fp32);

/// Its gradients: grad_weight = grad_y^T x, grad_bias the sum of `grad_y` over the rows, grad_x =
/// grad_y W. Each of them may be absent; without `grad_x` so may `weight`. On a GPU all of them
/// come from one launch where the matrices are small.
void linear_backward(ConstOperand x, ConstOperand weight, ConstOperand grad_y, Operand grad_weight,
                     Operand grad_bias, Operand grad_x, Device device = {}, Stream stream = {},
                     const DenseWorkspace* workspace = nullptr,
                     Precision arithmetic = Precision::fp32);

}  // namespace tessera::ops
