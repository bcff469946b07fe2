// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/attention/kernel.hpp"

namespace tessera::ops {

/// The same problem with fp32 operands.
inline AttentionProblem in_fp32(AttentionProblem problem) {
  problem.options.precision = Precision::fp32;
  return problem;
}

/// Runs a problem of 16-bit operands by a kernel for the same problem in fp32: copies of the
/// operands go in, and results are rounded when they come out. The kernel writes weights in any
/// precision.
std::unique_ptr<const PreparedAttention> widened(std::unique_ptr<const PreparedAttention> in_fp32,
                                                 const AttentionProblem& problem);

}  // namespace tessera::ops
