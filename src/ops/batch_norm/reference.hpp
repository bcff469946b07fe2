// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/matrix.hpp"
#include "tessera/ops/batch_norm.hpp"

/// Everything here is present; running statistics are updated in training.
namespace tessera::ops::reference {

void batch_norm(MatrixView<const double> x, MatrixView<const double> gamma,
                MatrixView<const double> beta, const BatchNormOptions& options,
                MatrixView<double> running_mean, MatrixView<double> running_variance,
                MatrixView<double> y, MatrixView<double> saved_mean,
                MatrixView<double> saved_inverse_deviation);

void batch_norm_backward(MatrixView<const double> x, MatrixView<const double> gamma,
                         MatrixView<const double> saved_mean,
                         MatrixView<const double> saved_inverse_deviation,
                         MatrixView<const double> grad_y, MatrixView<double> grad_x,
                         MatrixView<double> grad_gamma, MatrixView<double> grad_beta);

}  // namespace tessera::ops::reference
