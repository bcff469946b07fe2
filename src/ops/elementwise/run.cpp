// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/elementwise.hpp"

#include "ops/check.hpp"
#include "ops/dense_ops.hpp"

namespace tessera::ops {
namespace {

/// Throws unless y can take all elements of x. `from` and `to` are where they must lie.
void check_copy(const char* op, ConstOperand x, Device from, Operand y, Device to) {
  const Checker check_x(op, from);
  const Checker check_y(op, to);
  check_x.floating(x, "x");
  check_y.floating(y, "y");
  check_y.matrix(y, "y", {y.type, x.rows, x.cols});
  check_y.apart(y, "y", x, "x");
}

/// The memory of this process.
constexpr Device host = {};

}  // namespace

void fill(Operand y, double value, Device device, Stream stream) {
  const Checker check("fill", device);
  check.floating(y, "y");
  dense_ops(device).fill(y, value, stream);
}

void copy(ConstOperand x, Operand y, Device device, Stream stream) {
  require_available(device);
  check_copy("copy", x, device, y, device);
  dense_ops(device).copy(x, y, stream);
}

void upload(ConstOperand x, Operand y, Device device, Stream stream) {
  require_available(device);
  check_copy("upload", x, host, y, device);
  dense_ops(device).upload(x, y, stream);
}

void download(ConstOperand x, Operand y, Device device, Stream stream) {
  require_available(device);
  check_copy("download", x, device, y, host);
  dense_ops(device).download(x, y, stream);
}

void transpose(ConstOperand x, Operand y, Device device, Stream stream) {
  const Checker check("transpose", device);
  check.floating(x, "x");
  check.matrix(y, "y", {x.type, x.cols, x.rows});
  check.apart(y, "y", x, "x");
  dense_ops(device).transpose(x, y, stream);
}

void add_scaled(double alpha, ConstOperand x, double beta, Operand y, Device device,
                Stream stream) {
  const Checker check("add_scaled", device);
  check.floating(x, "x");
  check.matrix(y, "y", {x.type, x.rows, x.cols});
  check.apart_or_same(y, "y", x, "x");
  dense_ops(device).add_scaled({alpha}, x, beta, y, stream);
}

void add_scaled_by(ConstOperand factor, double offset, ConstOperand x, double beta, Operand y,
                   Device device, Stream stream) {
  const Checker check("add_scaled_by", device);
  check.floating(x, "x");
  check.matrix(factor, "factor", {x.type, 1, 1});
  check.matrix(y, "y", {x.type, x.rows, x.cols});
  check.apart_or_same(y, "y", x, "x");
  check.apart(y, "y", factor, "factor");
  dense_ops(device).add_scaled({offset, factor}, x, beta, y, stream);
}

void scale_rows(ConstOperand x, ConstOperand scale, Operand y, Device device, Stream stream) {
  const Checker check("scale_rows", device);
  check.floating(x, "x");
  check.floating(y, "y");
  if (x.type == ElementType::fp64 || y.type == ElementType::fp64) {
    check.fail("fp64 has no row scales");
  }
  check.matrix(scale, "scale", {ElementType::fp32, x.rows, 1});
  check.matrix(y, "y", {y.type, x.rows, x.cols});
  if (x.type == y.type) {
    check.apart_or_same(y, "y", x, "x");
  } else {
    check.apart(y, "y", x, "x");
  }
  check.apart(y, "y", scale, "scale");
  dense_ops(device).scale_rows(x, scale, y, stream);
}

void dot(ConstOperand x, ConstOperand y, Operand result, Device device, Stream stream,
         const DenseWorkspace* workspace) {
  const Checker check("dot", device);
  check.floating(x, "x");
  check.matrix(y, "y", {x.type, x.rows, x.cols});
  check.matrix(result, "result", {x.type, 1, 1});
  check.apart(result, "result", x, "x");
  check.apart(result, "result", y, "y");
  dense_ops(device).dot(x, y, result, stream, workspace);
}

}  // namespace tessera::ops
