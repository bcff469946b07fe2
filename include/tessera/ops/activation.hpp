// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/core/device.hpp"
#include "tessera/core/random.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/gradient_factors.hpp"
#include "tessera/ops/operand.hpp"
#include "tessera/ops/step_clock.hpp"

/// What follows a product in a layer, in one pass: Y = drop(activate(X + bias)).
namespace tessera::ops {

enum class Activation { none, relu, leaky_relu, elu };

const char* to_string(Activation activation) noexcept;
Activation parse_activation(const std::string& text);

struct ActivationOptions {
  Activation activation = Activation::none;
  double slope = 0.01;  ///< leaky_relu
  double alpha = 1;     ///< elu
  /// Share of elements set to 0, drawn as dropout.hpp says; the rest is divided by 1 - dropout.
  /// Element = row * cols + col.
  double dropout = 0;
  Random random = Random(0);
  /// If there is one, in the memory of the device: its step takes the place of `random`'s.
  const StepClock* clock = nullptr;
};

/// `bias` is 1 x cols or absent; `y` may be the memory of `x`.
void bias_activation_dropout(ConstOperand x, ConstOperand bias, const ActivationOptions& options,
                             Operand y, Device device = {}, Stream stream = {});

/// Takes the forward input `x`. `grad_x` may be the memory of `grad_y`; it and `grad_bias` may be
/// absent. With `factors` those take the place of `grad_y`, which is absent then, and `grad_x` must
/// be there.
void bias_activation_dropout_backward(ConstOperand x, ConstOperand bias,
                                      const ActivationOptions& options, ConstOperand grad_y,
                                      Operand grad_x, Operand grad_bias, Device device = {},
                                      Stream stream = {}, const DenseWorkspace* workspace = nullptr,
                                      const GradientFactors& factors = {});

/// Rows scaled to unit length: y = x / max(|x|, epsilon), and its gradient. `y` may be the memory
/// of `x`, and `grad_x` that of `grad_y`.
void row_normalise(ConstOperand x, Operand y, double epsilon = 1e-12, Device device = {},
                   Stream stream = {});
void row_normalise_backward(ConstOperand x, ConstOperand grad_y, Operand grad_x,
                            double epsilon = 1e-12, Device device = {}, Stream stream = {});

}  // namespace tessera::ops
