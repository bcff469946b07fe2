// SPDX-License-Identifier: Apache-2.0
#include "ops/dense_check.hpp"
#include "ops/dense_ops.hpp"
#include "tessera/ops/gemm.hpp"

namespace tessera::ops {
namespace {

constexpr Checker check("gemm");

bool is_half(Precision precision) {
  return precision == Precision::bf16 || precision == Precision::fp16;
}

/// That of the factors: C's own, but 16-bit factors may have an fp32 product on a GPU.
Precision factor_precision(const ConstOperand& a, const Operand& c, Device device) {
  const bool wide_product = device.kind == DeviceKind::cuda && c.precision == Precision::fp32;
  return wide_product && is_half(a.precision) ? a.precision : c.precision;
}

}  // namespace

void gemm(Transpose transpose_a, Transpose transpose_b, double alpha, ConstOperand a,
          ConstOperand b, double beta, Operand c, Device device, Stream stream,
          const DenseWorkspace* workspace) {
  check.floating(c, "c", device);
  check.readable(a, "a");
  const bool a_turned = transpose_a == Transpose::yes;
  const bool b_turned = transpose_b == Transpose::yes;
  const std::int64_t inner = a_turned ? a.rows : a.cols;
  const Precision precision = factor_precision(a, c, device);
  check.matrix(a, a_turned ? "a (transposed)" : "a", precision, a_turned ? inner : c.rows,
               a_turned ? c.rows : inner);
  check.matrix(b, b_turned ? "b (transposed)" : "b", precision, b_turned ? c.cols : inner,
               b_turned ? inner : c.cols);
  check.apart(c, "c", a, "a");
  check.apart(c, "c", b, "b");
  dense_ops(device).gemm({transpose_a, transpose_b, alpha, a, b, beta, c, inner}, stream,
                         workspace);
}

}  // namespace tessera::ops
