// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/device.hpp"
#include "tessera/graph/graph.hpp"
#include "tessera/ops/operand.hpp"

/// Products of rows with the weight of their group, all groups in one call: relations, or kinds of
/// vertices. fp64, fp32 or bf16 on the CPU; fp32, bf16 or fp16 on a GPU. Sums are in fp64 or fp32.
/// The same bits at every run and for any number of threads.
namespace tessera::ops {

/// y[i] = x[i] W_g, where row i belongs to group g.
///
/// `groups` says so: it has a row for each row of x, which lists one column, the group; a graph
/// whose rows are others is an `invalid_argument` error. `weights` has a row for each group:
/// `blocks` matrices, one after the other and each row by row, that stand on the diagonal of W_g
/// and are 0 outside (Schlichtkrull et al. 2018). One block is a whole matrix, in x out, as PyG's
/// `HeteroLinear` has it.
void grouped_linear(ConstOperand x, const Graph& groups, ConstOperand weights, std::int64_t blocks,
                    Operand y, Device device = {}, Stream stream = {});

/// Its gradients; either may be absent. Groups without rows have a gradient of 0.
void grouped_linear_backward(ConstOperand x, const Graph& groups, ConstOperand weights,
                             std::int64_t blocks, ConstOperand grad_y, Operand grad_x,
                             Operand grad_weights, Device device = {}, Stream stream = {});

}  // namespace tessera::ops
