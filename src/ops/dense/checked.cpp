// SPDX-License-Identifier: Apache-2.0
#include "ops/dense/checked.hpp"

#include <cmath>

#include <fmt/format.h>

namespace tessera::ops {

ActivationFormula checked_formula(const Checker& check, const ActivationOptions& options) {
  if (!(options.dropout >= 0 && options.dropout <= 1)) {
    check.fail(fmt::format("dropout is {}, expected 0 to 1", options.dropout));
  }
  if (!std::isfinite(options.slope)) check.fail(fmt::format("slope is {}", options.slope));
  if (!std::isfinite(options.alpha)) check.fail(fmt::format("alpha is {}", options.alpha));
  const Dropout dropout{options.dropout, options.random, options.clock};
  return {options.activation, options.slope, options.alpha, dropout.active(), dropout.constants()};
}

ConstOperand checked_factors(const Checker& check, const ConstOperand& x,
                             const GradientFactors& factors, const ConstOperand& grad_y,
                             const Operand& grad_x, Device device, Stream stream,
                             const DenseWorkspace* workspace) {
  const auto& [left, right] = factors;
  if (!grad_y.absent()) check.fail("there is grad_y beside its factors");
  check.matrix(left, "left factor", {x.type, x.rows, left.cols});
  check.matrix(right, "right factor", {x.type, left.cols, x.cols});
  check.matrix(grad_x, "grad_x", {x.type, x.rows, x.cols});
  check.apart(grad_x, "grad_x", {{left, "left factor"}, {right, "right factor"}, {x, "x"}});
  const DenseOps& ops = dense_ops(device);
  if (ops.multiplies_factors(x.rows, left.cols)) return {};
  GemmCall product;
  product.a = left;
  product.b = right;
  product.c = grad_x;
  product.inner = left.cols;
  ops.run(product, stream, workspace);
  return grad_x;
}

}  // namespace tessera::ops
