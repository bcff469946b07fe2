// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/core/matrix.hpp"
#include "tessera/ops/loss.hpp"

namespace tessera::ops::reference {

/// `grad_logits` without memory is not written.
double cross_entropy(MatrixView<const double> logits, std::span<const std::int64_t> labels,
                     std::span<const std::int64_t> rows, MatrixView<double> grad_logits,
                     const LossOptions& options = {});

double binary_cross_entropy(MatrixView<const double> logits, MatrixView<const float> targets,
                            std::span<const std::int64_t> rows, MatrixView<double> grad_logits,
                            double smoothing = 0);

double number_loss(MatrixView<const double> predicted, MatrixView<const float> targets,
                   std::span<const std::int64_t> rows, NumberLoss kind, MatrixView<double> gradient,
                   double huber_delta = 1);

}  // namespace tessera::ops::reference
