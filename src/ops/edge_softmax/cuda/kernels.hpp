// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ops/edge_softmax/kernel.hpp"

/// The CUDA kernels of edge_softmax. Only in a build with CUDA.
namespace tessera::ops {

void append_cuda_edge_softmax_kernels(std::vector<EdgeSoftmaxKernel>& table);

/// What attention asks of the softmax besides.
class PreparedCudaSoftmax : public PreparedEdgeSoftmax {
 public:
  /// Of `scale` times the scores; `log_sum` (rows x heads, fp32) becomes max + log(sum), -inf for a
  /// row without edges. Absent: not wanted.
  virtual void run_scaled(ConstOperand scores, float scale, Operand weights, Operand log_sum,
                          Stream stream, const WorkspaceView& workspace) const = 0;
};

}  // namespace tessera::ops
