// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/unit_rows.hpp"

#include <cmath>

#include <fmt/format.h>

#include "ops/check.hpp"
#include "ops/dense_ops.hpp"

namespace tessera::ops {
namespace {

void check_inputs(const Checker& check, const ConstOperand& x, const ConstOperand& factor,
                  double epsilon) {
  check.floating(x, "x");
  check.matrix(factor, "factor", {x.type, 1, 1});
  if (!(std::isfinite(epsilon) && epsilon > 0)) {
    check.fail(fmt::format("epsilon is {}, expected a number above 0", epsilon));
  }
}

}  // namespace

void unit_rows(ConstOperand x, ConstOperand factor, Operand unit, Operand scaled, double epsilon,
               Device device, Stream stream) {
  const Checker check("unit_rows", device);
  check_inputs(check, x, factor, epsilon);
  check.matrix(unit, "unit", {x.type, x.rows, x.cols});
  check.matrix(scaled, "scaled", {x.type, x.rows, x.cols});
  check.apart(unit, "unit", x, "x");
  check.apart(scaled, "scaled", x, "x");
  check.apart(scaled, "scaled", unit, "unit");
  dense_ops(device).unit_rows(x, factor, unit, scaled, epsilon, stream);
}

void unit_rows_backward(ConstOperand x, ConstOperand factor, Operand grad_unit, Operand grad_scaled,
                        Operand grad_x, double epsilon, Device device, Stream stream) {
  const Checker check("unit_rows_backward", device);
  check_inputs(check, x, factor, epsilon);
  check.matrix(grad_unit, "grad_unit", {x.type, x.rows, x.cols});
  check.matrix(grad_scaled, "grad_scaled", {x.type, x.rows, x.cols});
  check.matrix(grad_x, "grad_x", {x.type, x.rows, x.cols});
  check.apart(grad_unit, "grad_unit", x, "x");
  check.apart(grad_scaled, "grad_scaled", x, "x");
  check.apart(grad_scaled, "grad_scaled", grad_unit, "grad_unit");
  for (const Operand& gradient : {grad_unit, grad_scaled}) {
    check.apart(grad_x, "grad_x", gradient, "the other gradients");
  }
  check.apart(grad_x, "grad_x", x, "x");
  dense_ops(device).unit_rows_backward(x, factor, grad_unit, grad_scaled, grad_x, epsilon, stream);
}

}  // namespace tessera::ops
