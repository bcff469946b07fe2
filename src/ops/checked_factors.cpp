// SPDX-License-Identifier: Apache-2.0
#include "ops/checked_factors.hpp"

namespace tessera::ops {

ConstOperand checked_factors(const Checker& check, const ConstOperand& x,
                             const GradientFactors& factors, const ConstOperand& grad_y,
                             const Operand& grad_x, Device device, Stream stream,
                             const DenseWorkspace* workspace) {
  const auto& [left, right] = factors;
  if (!grad_y.absent()) check.fail("there is grad_y beside its factors");
  check.matrix(left, "left factor", {x.type, x.rows, left.cols});
  check.matrix(right, "right factor", {x.type, left.cols, x.cols});
  check.matrix(grad_x, "grad_x", {x.type, x.rows, x.cols});
  check.apart(grad_x, "grad_x", left, "left factor");
  check.apart(grad_x, "grad_x", right, "right factor");
  check.apart(grad_x, "grad_x", x, "x");
  const DenseOps& ops = dense_ops(device);
  if (ops.multiplies_factors(x.type, x.rows, left.cols)) return {};
  GemmCall product;
  product.a = left;
  product.b = right;
  product.c = grad_x;
  product.inner = left.cols;
  ops.gemm(product, stream, workspace);
  return grad_x;
}

}  // namespace tessera::ops
