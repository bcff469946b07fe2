// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// The gradient of edge values under max and min: a dot product of the features of the two ends,
/// over the elements that the edge's source won.
class WonEdgeGradients {
 public:
  virtual ~WonEdgeGradients() = default;
  virtual void run(const SpmmGradInputs& inputs, const Operand& grad_edge_values,
                   Stream stream) const = 0;
};

std::unique_ptr<const WonEdgeGradients> cpu_won_edge_gradients(const SpmmProblem& problem);

/// Only in a build with CUDA.
std::unique_ptr<const WonEdgeGradients> cuda_won_edge_gradients(const SpmmProblem& problem);

}  // namespace tessera::ops
