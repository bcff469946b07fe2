// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/activation.hpp"
#include "tessera/ops/unit_rows.hpp"

#include "ops/dense/checked.hpp"

namespace tessera::ops {
namespace {

void check_unit_rows(const Checker& check, const ConstOperand& x, const ConstOperand& factor,
                     double epsilon) {
  check.floating(x, "x");
  check.matrix(factor, "factor", {x.type, 1, 1});
  check.positive(epsilon, "epsilon");
}

}  // namespace

void bias_activation_dropout(ConstOperand x, ConstOperand bias, const ActivationOptions& options,
                             Operand y, Device device, Stream stream) {
  const Checker check("bias_activation_dropout", device);
  check.floating(x, "x");
  check.optional_matrix(bias, "bias", {x.type, 1, x.cols});
  check.matrix(y, "y", {x.type, x.rows, x.cols});
  check.apart_or_same(y, "y", x, "x");
  const ActivationFormula formula = checked_formula(check, options);
  if (x.rows == 0 || x.cols == 0) return;
  dense_ops(device).run(ActivationCall{x, bias, formula, y}, stream);
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
  dense_ops(device).run(ActivationGradCall{x, bias, formula, grad_y, grad_x, grad_bias, kept},
                        stream, workspace);
}

void row_normalise(ConstOperand x, Operand y, double epsilon, Device device, Stream stream) {
  const Checker check("row_normalise", device);
  check.floating(x, "x");
  check.matrix(y, "y", {x.type, x.rows, x.cols});
  check.apart_or_same(y, "y", x, "x");
  check.positive(epsilon, "epsilon");
  dense_ops(device).run(UnitRowsCall{x, {}, y, {}, epsilon}, stream);
}

void row_normalise_backward(ConstOperand x, ConstOperand grad_y, Operand grad_x, double epsilon,
                            Device device, Stream stream) {
  const Checker check("row_normalise_backward", device);
  check.floating(x, "x");
  check.matrices({{grad_y, "grad_y"}, {grad_x, "grad_x"}}, {x.type, x.rows, x.cols});
  check.apart_or_same(grad_x, "grad_x", grad_y, "grad_y");
  check.apart(grad_x, "grad_x", x, "x");
  check.positive(epsilon, "epsilon");
  dense_ops(device).run(UnitRowsGradCall{x, {}, grad_y, {}, grad_x, epsilon}, stream);
}

void unit_rows(ConstOperand x, ConstOperand factor, Operand unit, Operand scaled, double epsilon,
               Device device, Stream stream) {
  const Checker check("unit_rows", device);
  check_unit_rows(check, x, factor, epsilon);
  check.matrices({{unit, "unit"}, {scaled, "scaled"}}, {x.type, x.rows, x.cols});
  check.apart(unit, "unit", x, "x");
  check.apart(scaled, "scaled", {{x, "x"}, {unit, "unit"}});
  dense_ops(device).run(UnitRowsCall{x, factor, unit, scaled, epsilon}, stream);
}

void unit_rows_backward(ConstOperand x, ConstOperand factor, Operand grad_unit, Operand grad_scaled,
                        Operand grad_x, double epsilon, Device device, Stream stream) {
  const Checker check("unit_rows_backward", device);
  check_unit_rows(check, x, factor, epsilon);
  check.matrices({{grad_unit, "grad_unit"}, {grad_scaled, "grad_scaled"}, {grad_x, "grad_x"}},
                 {x.type, x.rows, x.cols});
  check.apart(grad_unit, "grad_unit", x, "x");
  check.apart(grad_scaled, "grad_scaled", {{x, "x"}, {grad_unit, "grad_unit"}});
  check.apart(grad_x, "grad_x",
              {{grad_unit, "the other gradients"}, {grad_scaled, "the other gradients"}, {x, "x"}});
  dense_ops(device).run(UnitRowsGradCall{x, factor, grad_unit, grad_scaled, grad_x, epsilon},
                        stream);
}

}  // namespace tessera::ops
