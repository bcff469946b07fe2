// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "tessera/ops/elementwise.hpp"

#include "ops/check.hpp"
#include "ops/dense_check.hpp"
#include "ops/dense_ops.hpp"

namespace tessera::ops {
namespace {

/// What `copy` converts between: all that the device stores.
void check_stored(const Checker& check, const ConstOperand& operand, const char* name,
                  Device device) {
  check.readable(operand, name);
  if (device.kind == DeviceKind::cuda) return check.floating(operand, name, device);
  const std::string problem = why_not_cpu_precision(operand.precision);
  check.that(problem.empty(), problem);
}

/// An operand in memory of this process.
constexpr Device host = {};

}  // namespace

void fill(Operand y, double value, Device device, Stream stream) {
  constexpr Checker check("fill");
  check.floating(y, "y", device);
  dense_ops(device).fill(y, value, stream);
}

void copy(ConstOperand x, Operand y, Device device, Stream stream) {
  constexpr Checker check("copy");
  require_available(device);
  check_stored(check, x, "x", device);
  check_stored(check, y, "y", device);
  check.matrix(y, "y", y.precision, x.rows, x.cols);
  check.apart(y, "y", x, "x");
  dense_ops(device).copy(x, y, stream);
}

void upload(ConstOperand x, Operand y, Device device, Stream stream) {
  constexpr Checker check("upload");
  require_available(device);
  check_stored(check, x, "x", host);
  check_stored(check, y, "y", device);
  check.matrix(y, "y", y.precision, x.rows, x.cols);
  check.apart(y, "y", x, "x");
  dense_ops(device).upload(x, y, stream);
}

void download(ConstOperand x, Operand y, Device device, Stream stream) {
  constexpr Checker check("download");
  require_available(device);
  check_stored(check, x, "x", device);
  check_stored(check, y, "y", host);
  check.matrix(y, "y", y.precision, x.rows, x.cols);
  check.apart(y, "y", x, "x");
  dense_ops(device).download(x, y, stream);
}

void transpose(ConstOperand x, Operand y, Device device, Stream stream) {
  constexpr Checker check("transpose");
  check.floating(x, "x", device);
  check.matrix(y, "y", x.precision, x.cols, x.rows);
  check.apart(y, "y", x, "x");
  dense_ops(device).transpose(x, y, stream);
}

void add_scaled(double alpha, ConstOperand x, double beta, Operand y, Device device,
                Stream stream) {
  constexpr Checker check("add_scaled");
  check.floating(x, "x", device);
  check.matrix(y, "y", x.precision, x.rows, x.cols);
  check.apart_or_same(y, "y", x, "x");
  dense_ops(device).add_scaled({alpha}, x, beta, y, stream);
}

void add_scaled_by(ConstOperand factor, double offset, ConstOperand x, double beta, Operand y,
                   Device device, Stream stream) {
  constexpr Checker check("add_scaled_by");
  check.floating(x, "x", device);
  check.matrix(factor, "factor", x.precision, 1, 1);
  check.matrix(y, "y", x.precision, x.rows, x.cols);
  check.apart_or_same(y, "y", x, "x");
  check.apart(y, "y", factor, "factor");
  dense_ops(device).add_scaled({offset, factor}, x, beta, y, stream);
}

void dot(ConstOperand x, ConstOperand y, Operand result, Device device, Stream stream,
         const DenseWorkspace* workspace) {
  constexpr Checker check("dot");
  check.floating(x, "x", device);
  check.matrix(y, "y", x.precision, x.rows, x.cols);
  check.matrix(result, "result", x.precision, 1, 1);
  check.apart(result, "result", x, "x");
  check.apart(result, "result", y, "y");
  dense_ops(device).dot(x, y, result, stream, workspace);
}

}  // namespace tessera::ops
