// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/ops/activation.hpp"

#include "ops/activation/checked_formula.hpp"
#include "ops/check.hpp"
#include "ops/checked_factors.hpp"
#include "ops/dense_ops.hpp"

namespace tessera::ops {
namespace {

void check_epsilon(const Checker& check, double epsilon) {
  if (!(std::isfinite(epsilon) && epsilon > 0)) {
    check.fail(fmt::format("epsilon is {}, expected a number above 0", epsilon));
  }
}

}  // namespace

ActivationFormula checked_formula(const Checker& check, const ActivationOptions& options) {
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    check.fail(fmt::format("dropout is {}, expected 0 to 1", options.dropout));
  }
  if (!std::isfinite(options.slope)) check.fail(fmt::format("slope is {}", options.slope));
  if (!std::isfinite(options.alpha)) check.fail(fmt::format("alpha is {}", options.alpha));
  const Dropout dropout{options.dropout, options.random, options.clock};
  return {options.activation, options.slope, options.alpha, dropout.active(), dropout.constants()};
}

void bias_activation_dropout(ConstOperand x, ConstOperand bias, const ActivationOptions& options,
                             Operand y, Device device, Stream stream) {
  const Checker check("bias_activation_dropout", device);
  check.floating(x, "x");
  check.optional_matrix(bias, "bias", {x.type, 1, x.cols});
  check.matrix(y, "y", {x.type, x.rows, x.cols});
  check.apart_or_same(y, "y", x, "x");
  const ActivationFormula formula = checked_formula(check, options);
  if (x.rows == 0 || x.cols == 0) return;
  dense_ops(device).activate(x, bias, formula, y, stream);
}

void bias_activation_dropout_backward(ConstOperand x, ConstOperand bias,
                                      const ActivationOptions& options, ConstOperand grad_y,
                                      Operand grad_x, Operand grad_bias, Device device,
                                      Stream stream, const DenseWorkspace* workspace,
                                      const GradientFactors& factors) {
  const Checker check("bias_activation_dropout_backward", device);
  check.floating(x, "x");
  check.optional_matrix(bias, "bias", {x.type, 1, x.cols});
  GradientFactors kept = factors;
  if (!factors.absent()) {
    grad_y = checked_factors(check, x, factors, grad_y, grad_x, device, stream, workspace);
    if (!grad_y.absent()) kept = {};
  } else {
    check.matrix(grad_y, "grad_y", {x.type, x.rows, x.cols});
  }
  check.optional_matrix(grad_x, "grad_x", {x.type, x.rows, x.cols});
  check.optional_matrix(grad_bias, "grad_bias", {x.type, 1, x.cols});
  check.apart_or_same(grad_x, "grad_x", grad_y, "grad_y");
  check.apart(grad_x, "grad_x", x, "x");
  const ActivationFormula formula = checked_formula(check, options);
  if (x.cols == 0 || (grad_x.absent() && grad_bias.absent())) return;
  dense_ops(device).activate_backward(x, bias, formula, grad_y, grad_x, grad_bias, stream,
                                      workspace, kept);
}

void row_normalise(ConstOperand x, Operand y, double epsilon, Device device, Stream stream) {
  const Checker check("row_normalise", device);
  check.floating(x, "x");
  check.matrix(y, "y", {x.type, x.rows, x.cols});
  check.apart_or_same(y, "y", x, "x");
  check_epsilon(check, epsilon);
  dense_ops(device).row_normalise(x, y, epsilon, stream);
}

void row_normalise_backward(ConstOperand x, ConstOperand grad_y, Operand grad_x, double epsilon,
                            Device device, Stream stream) {
  const Checker check("row_normalise_backward", device);
  check.floating(x, "x");
  check.matrix(grad_y, "grad_y", {x.type, x.rows, x.cols});
  check.matrix(grad_x, "grad_x", {x.type, x.rows, x.cols});
  check.apart_or_same(grad_x, "grad_x", grad_y, "grad_y");
  check.apart(grad_x, "grad_x", x, "x");
  check_epsilon(check, epsilon);
  dense_ops(device).row_normalise_backward(x, grad_y, grad_x, epsilon, stream);
}

}  // namespace tessera::ops
