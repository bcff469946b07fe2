// SPDX-License-Identifier: Apache-2.0
#include "ops/dense/dense_ops.hpp"
#include "ops/plan/check.hpp"
#include "tessera/ops/gemm.hpp"

namespace tessera::ops {
namespace {

bool is_half(ElementType type) { return type == ElementType::bf16 || type == ElementType::fp16; }

/// That of the factors: C's own, but 16-bit factors may have an fp32 product.
ElementType factor_type(const ConstOperand& a, const Operand& c) {
  return c.type == ElementType::fp32 && is_half(a.type) ? a.type : c.type;
}

}  // namespace

void gemm(Transpose transpose_a, Transpose transpose_b, double alpha, ConstOperand a,
          ConstOperand b, double beta, Operand c, Device device, Stream stream,
          const DenseWorkspace* workspace, Precision arithmetic) {
  const Checker check("gemm", device);
  check.floating(c, "c");
  check.floating(a, "a");
  const bool a_turned = transpose_a == Transpose::yes;
  const bool b_turned = transpose_b == Transpose::yes;
  const std::int64_t inner = a_turned ? a.rows : a.cols;
  const ElementType type = factor_type(a, c);
  check.matrix(a, a_turned ? "a (transposed)" : "a",
               {type, a_turned ? inner : c.rows, a_turned ? c.rows : inner});
  check.matrix(b, b_turned ? "b (transposed)" : "b",
               {type, b_turned ? c.cols : inner, b_turned ? inner : c.cols});
  check.apart(c, "c", {{a, "a"}, {b, "b"}});
  const bool allows_tf32 = arithmetic == Precision::tf32 && type == ElementType::fp32;
  dense_ops(device).run(
      GemmCall{transpose_a, transpose_b, alpha, a, b, beta, c, inner, allows_tf32}, stream,
      workspace);
}

}  // namespace tessera::ops
