// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/matrix.hpp"
#include "tessera/ops/activation.hpp"

namespace tessera::ops::reference {

/// `bias` without memory means none.
void bias_activation_dropout(MatrixView<const double> x, MatrixView<const double> bias,
                             const ActivationOptions& options, MatrixView<double> y);

void bias_activation_dropout_backward(MatrixView<const double> x, MatrixView<const double> bias,
                                      const ActivationOptions& options,
                                      MatrixView<const double> grad_y, MatrixView<double> grad_x,
                                      MatrixView<double> grad_bias);

void row_normalise(MatrixView<const double> x, double epsilon, MatrixView<double> y);

void row_normalise_backward(MatrixView<const double> x, MatrixView<const double> grad_y,
                            double epsilon, MatrixView<double> grad_x);

}  // namespace tessera::ops::reference
