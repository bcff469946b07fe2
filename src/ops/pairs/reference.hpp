// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tessera/core/matrix.hpp"
#include "tessera/ops/pairs.hpp"

/// What the ops on pairs mean: one pair after the other, in double precision.
namespace tessera::ops::reference {

/// How the rows of a pair become one.
enum class PairOp { dot, sum };

Matrix<double> of_pairs(PairOp op, const Matrix<double>& sources, const Matrix<double>& targets,
                        MatrixView<const std::int32_t> pairs, std::int64_t heads);

/// Adds to both gradients.
void of_pairs_backward(PairOp op, const Matrix<double>& sources, const Matrix<double>& targets,
                       MatrixView<const std::int32_t> pairs, const Matrix<double>& grad_y,
                       MatrixView<double> grad_sources, MatrixView<double> grad_targets);

/// The loss; writes the gradient.
double pair_loss(std::span<const double> scores, const PairLossOptions& options,
                 std::span<double> gradient);

}  // namespace tessera::ops::reference
