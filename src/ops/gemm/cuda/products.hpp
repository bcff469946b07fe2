// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/dense/dense_ops.hpp"

namespace tessera::ops {

/// Products of fp32 or bf16 matrices on tensor cores, as exact as fp32, the same bits at every
/// call: how the work is cut depends on the sizes alone. `memory` is that of a `DenseWorkspace`.
/// False, and nothing done, where BLAS is the better choice.
bool run_product(const GemmCall& call, Device device, std::byte* memory, Stream stream);

/// The gradients of a dense layer, two products and perhaps the sum of columns, in one launch.
/// False, and nothing done, where the matrices are too large for that or not all of it is wanted.
bool run_linear_backward(const LinearGradCall& call, std::byte* memory, Stream stream);

/// The gradient of a weight and `norm_sums`, where `linear_finds_norm_sums`.
void run_thin_norm_sums(const LinearGradCall& call, std::byte* memory, Stream stream);

/// Whether products of many rows read columns and find moments (`linear_fuses`).
bool products_fuse(Device device, ElementType type);

}  // namespace tessera::ops
