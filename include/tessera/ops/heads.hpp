// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/operand.hpp"

/// Products and means over the heads of a row: X is rows x (heads * w), head h of row i being
/// X[i][h*w .. h*w+w). fp64, fp32 or bf16 on the CPU; fp32, bf16 or fp16 on a GPU.
namespace tessera::ops {

/// Y[i][h] = X[i][h] . vector[h]: what GAT scores its vertices with. `vector` is 1 x (heads * w),
/// and the number of heads is the width of `y`.
void head_dot(ConstOperand x, ConstOperand vector, Operand y, Device device = {},
              Stream stream = {});

/// Adds dY[i][h] * vector[h] to `grad_x`, and writes `grad_vector`; either may be absent.
void head_dot_backward(ConstOperand x, ConstOperand vector, ConstOperand grad_y, Operand grad_x,
                       Operand grad_vector, Device device = {}, Stream stream = {},
                       const DenseWorkspace* workspace = nullptr);

/// Both scores of an attention whose sources and targets are the same rows, in one pass over them:
/// `head_dot` with each of two vectors.
void head_dots(ConstOperand x, ConstOperand first, ConstOperand second, Operand of_first,
               Operand of_second, Device device = {}, Stream stream = {});

/// Its gradient: adds to `grad_x`, and writes those of the vectors.
void head_dots_backward(ConstOperand x, ConstOperand first, ConstOperand second,
                        ConstOperand grad_of_first, ConstOperand grad_of_second, Operand grad_x,
                        Operand grad_first, Operand grad_second, Device device = {},
                        Stream stream = {}, const DenseWorkspace* workspace = nullptr);

/// Y[i] = mean over the heads of X[i][h]; w is the width of `y`.
void head_mean(ConstOperand x, Operand y, Device device = {}, Stream stream = {});

/// Writes dX[i][h] = dY[i] / heads.
void head_mean_backward(ConstOperand grad_y, Operand grad_x, Device device = {},
                        Stream stream = {});

}  // namespace tessera::ops
