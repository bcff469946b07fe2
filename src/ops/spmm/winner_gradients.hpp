// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// The gradient of edge values, in the order of the edges.
class EdgeValueGradients {
 public:
  virtual ~EdgeValueGradients() = default;
  virtual void run(const SpmmGradInputs& inputs, const Operand& grad_edge_values,
                   Stream stream) const = 0;
};

/// Under max and min: a dot product of the features of the two ends, over the elements that the
/// edge's source won.
std::unique_ptr<const EdgeValueGradients> cpu_winner_gradients(const SpmmProblem& problem);

/// Only in a build with CUDA.
std::unique_ptr<const EdgeValueGradients> cuda_winner_gradients(const SpmmProblem& problem);

}  // namespace tessera::ops
