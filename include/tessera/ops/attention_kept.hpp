// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/ops/attention.hpp"

/// What a forward run of attention may keep for its backward run beside output and log sums, where
/// the plan's kernel has a use for it. In the form gat these are sums over the edges whose score
/// lies above 0: the gradient of the targets' scores follows from them, so that the backward run
/// gathers the rows of one side alone.
namespace tessera::ops {

/// How many numbers that is, in the type of `log_sum`; 0 where there is nothing to keep.
std::int64_t kept_numbers(const AttentionPlan& plan);

/// As `run`. `kept` is a row of `kept_numbers`; absent: nothing is kept.
void run_keeping(const AttentionPlan& plan, const AttentionInputs& inputs,
                 const AttentionOutputs& outputs, Operand kept, Stream stream = {},
                 Workspace workspace = {});

/// As `run_backward`, with what the forward run has kept. Absent: it is computed again. Kernels may
/// keep nothing where an operand, or `kept`, lies on no boundary of 16 bytes: all that both runs
/// are given lies on one in both of them or in neither, or gradients may not be a number.
void run_backward_kept(const AttentionPlan& plan, const AttentionInputs& inputs,
                       ConstOperand output, ConstOperand log_sum, ConstOperand kept,
                       ConstOperand grad_output, const AttentionGradOutputs& gradients,
                       Stream stream = {}, Workspace workspace = {});

}  // namespace tessera::ops
