// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/ops/operand.hpp"

/// Kernels of the GPU that are no part of the library: what layers do to small tensors, in one
/// launch each. Elements are fp32, bf16 or fp16, and computed in fp32.
namespace tessera::torch_ops {

/// A matrix that another becomes, see `Copy`. With a diagonal `from` is one row.
struct CopyPart {
  ops::ConstOperand from;
  ops::Operand to;
  std::int64_t diagonal = 0;
};

/// Makes all copies, so many at a time as a launch takes.
void copy_parts(std::span<const CopyPart> parts, Stream stream);

/// values[i] = 0 wherever decides[i] is 0, of matrices of one shape and type.
void clear_where_zero(ops::Operand values, ops::ConstOperand decides, Stream stream);

}  // namespace tessera::torch_ops
