// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "ops/registry.hpp"
#include "tessera/ops/spmm.hpp"

namespace tessera::ops {

/// The product itself, or the gradient with respect to X of a sum or mean: A^T dY.
enum class SpmmPass { forward, backward };

struct SpmmProblem {
  Graph graph;
  Reduction reduction = Reduction::sum;
  Precision precision = Precision::fp32;
  std::int64_t features = 0;
  SpmmPass pass = SpmmPass::forward;
};

/// What a plan keeps of a kernel. In a backward pass `x` is dY and `y` is dX. Operands have been
/// checked.
class PreparedSpmm {
 public:
  virtual ~PreparedSpmm() = default;
  virtual void run(const SpmmInputs& inputs, const SpmmOutputs& outputs, Stream stream) const = 0;
  virtual std::int64_t workspace_bytes() const noexcept = 0;
};

using SpmmKernel = Kernel<SpmmProblem, PreparedSpmm>;

std::span<const SpmmKernel> spmm_kernels();

}  // namespace tessera::ops
