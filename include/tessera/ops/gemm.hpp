// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/core/device.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/operand.hpp"

namespace tessera::ops {

enum class Transpose { no, yes };

/// C = alpha * op(A) * op(B) + beta * C. With beta = 0 what C held plays no part, not even a
/// not-a-number. Empty shapes are allowed; an inner size of 0, or alpha = 0, gives beta * C.
///
/// C of 16-bit factors may be fp32.
///
/// On the CPU fp64, fp32, or bf16 with sums in fp32: the product is cut into BLAS calls by its
/// sizes alone, so the result is the same bits for any number of threads. Rows may number more than
/// 2^31; a row longer than 2^31 - 1 elements is an `unsupported` error.
///
/// On a GPU fp32, bf16 or fp16, with sums in fp32. The same bits at every call. Small fp32
/// products, and those of very many rows with a small matrix, run on tensor cores as exactly as
/// fp32, the others by cuBLAS. fp32 is never rounded to tf32 unless `arithmetic` allows it: with
/// `Precision::tf32` cuBLAS's products have factors of tf32. A CPU computes as with fp32.
void gemm(Transpose transpose_a, Transpose transpose_b, double alpha, ConstOperand a,
          ConstOperand b, double beta, Operand c, Device device = {}, Stream stream = {},
          const DenseWorkspace* workspace = nullptr, Precision arithmetic = Precision::fp32);

}  // namespace tessera::ops
