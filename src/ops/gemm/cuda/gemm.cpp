// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/dense/cuda/blas_handle.hpp"
#include "ops/dense/cuda/dense_ops.hpp"
#include "ops/dense/dense_workspace.hpp"
#include "ops/dense/linear_products.hpp"
#include "ops/gemm/cuda/products.hpp"

namespace tessera::ops {
namespace {

cudaDataType_t type_of(ElementType type) {
  switch (type) {
    case ElementType::bf16: return CUDA_R_16BF;
    case ElementType::fp16: return CUDA_R_16F;
    default: return CUDA_R_32F;
  }
}

cublasOperation_t flag(Transpose transpose) {
  return transpose == Transpose::yes ? CUBLAS_OP_T : CUBLAS_OP_N;
}

/// Sums of so few products gain nothing, and the roundings of their factors would not even out.
constexpr std::int64_t shortest_in_tf32 = 32;

cublasComputeType_t arithmetic_of(const GemmCall& call) {
  return call.allows_tf32 && call.inner >= shortest_in_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                            : CUBLAS_COMPUTE_32F;
}

/// A single row may have any stride; BLAS wants one that holds its columns.
template <class AnyOperand>
std::int64_t stride_of(const AnyOperand& operand) {
  return std::max<std::int64_t>({operand.stride, operand.cols, 1});
}

}  // namespace

void CudaDenseRun::run(const GemmCall& call) const {
  if (call.c.rows == 0 || call.c.cols == 0) return;
  const auto add_bias = [&] {
    if (!call.bias.absent()) run(ActivationCall{call.c, call.bias, {}, call.c});
  };
  if (call.inner == 0 || call.alpha == 0) {
    if (call.beta == 0) {
      run(FillCall{call.c});
    } else {
      run(AddScaledCall{call.c, call.c, call.beta});
    }
    return add_bias();
  }
  const DenseWorkspaceUse use(workspace, "gemm", device, stream);
  if (run_product(call, device, use.data(), stream)) return;
  if (!call.of_a.columns.absent() || !call.of_b.columns.absent() || !call.moments.absent() ||
      call.relu) {
    throw Error(ErrorCode::internal, "no kernel reads columns, finds moments or ends in ReLU",
                "gemm");
  }
  const BlasCall blas(device, stream, use.data());
  const auto alpha = static_cast<float>(call.alpha);
  const auto beta = static_cast<float>(call.beta);
  // BLAS counts by columns: read so, a row-major matrix is its own transpose, and C^T = B^T A^T.
  blas.check(cublasGemmEx_64(
      blas.handle(), flag(call.transpose_b), flag(call.transpose_a), call.c.cols, call.c.rows,
      call.inner, &alpha, call.b.data, type_of(call.b.type), stride_of(call.b), call.a.data,
      type_of(call.a.type), stride_of(call.a), &beta, call.c.data, type_of(call.c.type),
      stride_of(call.c), arithmetic_of(call), CUBLAS_GEMM_DEFAULT));
  add_bias();
}

void CudaDenseRun::run(const LinearCall& call) const { run(product_of(call)); }

void CudaDenseRun::run(const LinearGradCall& call) const {
  LinearGradCall rest = call;
  {
    const DenseWorkspaceUse use(workspace, "linear_backward", device, stream);
    if (const ChainCall alone = call; chains(alone)) return run_chain({&alone, 1});
    if (run_linear_backward(call, use.data(), stream)) return;
    if (!call.norm_sums.absent()) {
      run_thin_norm_sums(call, use.data(), stream);
      rest.grad_weight = {};
      rest.norm_sums = {};
    }
  }
  run_one_by_one(rest, [&](const auto& part) { run(part); });
}

}  // namespace tessera::ops
