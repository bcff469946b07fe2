// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda/edge_terms.hpp"

#include <cuda_runtime_api.h>

#include "core/cuda_check.hpp"
#include "ops/attention/edge_terms.hpp"
#include "ops/edge_softmax/cuda/kernels.hpp"

namespace tessera::ops {
namespace {

void copy(const ConstOperand& from, const Operand& to, Stream stream) {
  if (from.rows == 0) return;
  const auto bytes = [](std::int64_t numbers) {
    return static_cast<std::size_t>(numbers) * sizeof(float);
  };
  const auto queue = static_cast<cudaStream_t>(stream.handle);
  const char* const what = "copying numbers of edges";
  // The stride of a single row says nothing.
  if (from.rows == 1 || (from.stride == from.cols && to.stride == to.cols)) {
    cuda_check(cudaMemcpyAsync(to.data, from.data, bytes(from.rows * from.cols),
                               cudaMemcpyDeviceToDevice, queue),
               what);
    return;
  }
  cuda_check(
      cudaMemcpy2DAsync(to.data, bytes(to.stride), from.data, bytes(from.stride), bytes(from.cols),
                        static_cast<std::size_t>(from.rows), cudaMemcpyDeviceToDevice, queue),
      what);
}

/// Every softmax on a GPU is one of those that write logarithms.
void softmax(const PreparedEdgeSoftmax& softmax, const Graph&, const Operand& scores,
             const Operand& log_sum, Stream stream, const WorkspaceView& workspace) {
  dynamic_cast<const PreparedCudaSoftmax&>(softmax).run_scaled(scores, 1, scores, log_sum, stream,
                                                               workspace);
}

}  // namespace

const EdgeTermOps& cuda_edge_term_ops() {
  static constexpr EdgeTermOps ops{
      add_terms, differentiate_terms, score_by_vector, differentiate_by_vector,
      copy,      drop_numbers,        softmax};
  return ops;
}

}  // namespace tessera::ops
