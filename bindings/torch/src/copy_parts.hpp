// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/ops/operand.hpp"

/// Copies of small matrices in one launch. Elements are fp32, bf16 or fp16.
namespace tessera::torch_ops {

/// A matrix that another becomes, see `Copy`. With a diagonal `from` is one row.
struct CopyPart {
  ops::ConstOperand from;
  ops::Operand to;
  std::int64_t diagonal = 0;
};

/// Makes all copies, so many at a time as a launch takes.
void copy_parts(std::span<const CopyPart> parts, Stream stream);

}  // namespace tessera::torch_ops
