// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/ops/edge_softmax.hpp"

#include "ops/plan/registry.hpp"
#include "ops/plan/workspace.hpp"

namespace tessera::ops {

struct EdgeSoftmaxProblem {
  Graph graph;
  EdgeSoftmaxOptions options;
};

/// What a plan keeps of a kernel. Operands have been checked.
class PreparedEdgeSoftmax {
 public:
  virtual ~PreparedEdgeSoftmax() = default;
  void run(ConstOperand scores, Operand weights, Stream stream,
           const WorkspaceView& workspace) const {
    run_scaled(scores, 1, weights, {}, stream, workspace);
  }
  /// Of `scale` times the scores; `log_sum` (rows x heads, fp64 beside scores of fp64, else fp32)
  /// becomes max + log(sum), -inf for a row without edges. Absent: not wanted.
  virtual void run_scaled(ConstOperand scores, double scale, Operand weights, Operand log_sum,
                          Stream stream, const WorkspaceView& workspace) const = 0;
  virtual void run_backward(ConstOperand weights, ConstOperand grad_weights, Operand grad_scores,
                            Stream stream, const WorkspaceView& workspace) const = 0;
  /// As of spmm's kernels.
  virtual WorkspaceNeed workspace() const { return {}; }
  virtual std::int64_t own_bytes() const noexcept { return 0; }
};

using EdgeSoftmaxKernel = Kernel<EdgeSoftmaxProblem, PreparedEdgeSoftmax>;

/// Every kernel of this build.
std::span<const EdgeSoftmaxKernel> edge_softmax_kernels();

/// Only in a build with CUDA.
void append_cuda_edge_softmax_kernels(std::vector<EdgeSoftmaxKernel>& table);

}  // namespace tessera::ops
