// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/device.hpp"
#include "tessera/ops/operand.hpp"

namespace tessera::ops {

enum class OptimiserKind { sgd, adam, adamw };

struct OptimiserOptions {
  OptimiserKind kind = OptimiserKind::adam;
  double learning_rate = 0.01;
  double momentum = 0;  ///< sgd
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  /// Added to the gradient (sgd, adam), or taken off the parameter itself (adamw).
  double weight_decay = 0;
};

/// One step on one parameter, as PyTorch's optimisers of the same names. `step` counts from 1.
/// `first` (momentum) and `second` (adam) have the parameter's shape and start as 0; sgd without
/// momentum needs neither.
void optimiser_step(const OptimiserOptions& options, std::int64_t step, ConstOperand gradient,
                    Operand parameter, Operand first, Operand second, Device device = {},
                    Stream stream = {});

}  // namespace tessera::ops
