// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/spmm/kernel.hpp"

namespace tessera::ops {

/// The gradient of edge values under max and min: a dot product of the features of the two ends,
/// over the elements that the edge's source won.
class WinnerGradients {
 public:
  virtual ~WinnerGradients() = default;
  virtual void run(const SpmmGradInputs& inputs, const Operand& grad_edge_values,
                   Stream stream) const = 0;
};

std::unique_ptr<const WinnerGradients> cpu_winner_gradients(const SpmmProblem& problem);

/// Only in a build with CUDA.
std::unique_ptr<const WinnerGradients> cuda_winner_gradients(const SpmmProblem& problem);

}  // namespace tessera::ops
