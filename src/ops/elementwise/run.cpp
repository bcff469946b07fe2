// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops/elementwise.hpp"

#include "ops/dense/dense_ops.hpp"
#include "ops/plan/check.hpp"

namespace tessera::ops {
namespace {

/// The memory of this process.
constexpr Device host = {};

/// `from` and `to` are where the matrices must lie, one of them on the device.
void copy_between(const char* op, ConstOperand x, Device from, Operand y, Device to, Device device,
                  Stream stream) {
  require_available(device);
  const Checker check_x(op, from);
  const Checker check_y(op, to);
  check_x.floating(x, "x");
  check_y.floating(y, "y");
  check_y.matrix(y, "y", {y.type, x.rows, x.cols});
  check_y.apart(y, "y", x, "x");
  dense_ops(device).run(CopyCall{x, y}, stream);
}

}  // namespace

void fill(Operand y, double value, Device device, Stream stream) {
  const Checker check("fill", device);
  check.floating(y, "y");
  dense_ops(device).run(FillCall{y, value}, stream);
}

void copy(ConstOperand x, Operand y, Device device, Stream stream) {
  copy_between("copy", x, device, y, device, device, stream);
}

void upload(ConstOperand x, Operand y, Device device, Stream stream) {
  copy_between("upload", x, host, y, device, device, stream);
}

void download(ConstOperand x, Operand y, Device device, Stream stream) {
  copy_between("download", x, device, y, host, device, stream);
}

void transpose(ConstOperand x, Operand y, Device device, Stream stream) {
  const Checker check("transpose", device);
  check.floating(x, "x");
  check.matrix(y, "y", {x.type, x.cols, x.rows});
  check.apart(y, "y", x, "x");
  dense_ops(device).run(TransposeCall{x, y}, stream);
}

void add_scaled(double alpha, ConstOperand x, double beta, Operand y, Device device,
                Stream stream) {
  const Checker check("add_scaled", device);
  check.floating(x, "x");
  check.matrix(y, "y", {x.type, x.rows, x.cols});
  check.apart_or_same(y, "y", x, "x");
  dense_ops(device).run(AddScaledCall{x, y, alpha, beta}, stream);
}

void add_scaled_by(ConstOperand factor, double offset, ConstOperand x, double beta, Operand y,
                   Device device, Stream stream) {
  const Checker check("add_scaled_by", device);
  check.floating(x, "x");
  check.matrix(factor, "factor", {x.type, 1, 1});
  check.matrix(y, "y", {x.type, x.rows, x.cols});
  check.apart_or_same(y, "y", x, "x");
  check.apart(y, "y", factor, "factor");
  dense_ops(device).run(AddScaledCall{x, y, offset, beta, factor}, stream);
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
  dense_ops(device).run(ScaleRowsCall{x, scale, y}, stream);
}

void dot(ConstOperand x, ConstOperand y, Operand result, Device device, Stream stream,
         const DenseWorkspace* workspace) {
  const Checker check("dot", device);
  check.floating(x, "x");
  check.matrix(y, "y", {x.type, x.rows, x.cols});
  check.matrix(result, "result", {x.type, 1, 1});
  check.apart(result, "result", {{x, "x"}, {y, "y"}});
  dense_ops(device).run(DotCall{x, y, result}, stream, workspace);
}

}  // namespace tessera::ops
